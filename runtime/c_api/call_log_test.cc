// Calls of the C API are counted in the file that XCCL_LOG_CALLS names.
#include "runtime/c_api/call_log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "ir/call_log.h"
#include "runtime/c_api/testing/books.h"
#include "runtime/c_api/testing/moe_plan.h"
#include "runtime/c_api/testing/processes.h"
#include "runtime/xccl.h"

namespace xccl {
namespace {

std::string FolderOf(const std::string& name) {
  const std::string folder = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  EXPECT_EQ(MakeFolders(folder), OkStatus());
  return folder;
}

// Sets the variable while it lives.
class Logging {
 public:
  explicit Logging(const std::string& file) {
    setenv("XCCL_LOG_CALLS", file.c_str(), 1);
    c_api::ForgetCallLog();
  }
  ~Logging() {
    unsetenv("XCCL_LOG_CALLS");
    c_api::ForgetCallLog();
  }
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;
};

CallLog Read(const std::string& path) {
  const StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) {
    ADD_FAILURE() << text.status().message();
    return {};
  }
  const StatusOr<CallLog> log = ReadCallLog(*text, path);
  EXPECT_TRUE(log.ok()) << log.status().message();
  return log.ok() ? *log : CallLog();
}

// "allreduce 40 float sum by allreduce.plan.json: 3"
std::vector<std::string> Texts(const LoggedCommunicator& of) {
  std::vector<std::string> texts;
  for (const CountedCalls& row : of.rows) {
    std::string text = std::string(ToString(row.collective)) + " " + std::to_string(row.size_bytes) + " " +
                       std::string(ToString(row.type));
    if (row.op) text += " " + std::string(ToString(*row.op));
    if (row.root) text += " root " + std::to_string(row.root->value);
    texts.push_back(text + " by " + row.served_by + ": " + std::to_string(row.calls));
    EXPECT_EQ(row.timed, row.calls);
    EXPECT_GT(row.time_ps, 0);
  }
  return texts;
}

TEST(CallLog, ThreadsOfOneProcessShareAFile) {
  constexpr int kRanks = 3;
  const std::string folder = FolderOf("log-threads");
  const Logging logging(folder + "/calls.json");
  const std::string book = MakeBook(
      "logged", kRanks, {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kBroadcast});
  std::vector<xcclComm_t> comms(kRanks);
  ASSERT_EQ(xcclCommInitAll(comms.data(), kRanks, nullptr), xcclSuccess);
  for (xcclComm_t comm : comms) ASSERT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess);
  std::vector<std::vector<float>> in(kRanks, std::vector<float>(30)), out = in;
  for (int i = 0; i < 3; ++i)
    for (int r = 0; r < kRanks; ++r) {
      void* const to = out[static_cast<size_t>(r)].data();
      const void* const from = in[static_cast<size_t>(r)].data();
      xcclComm_t comm = comms[static_cast<size_t>(r)];
      EXPECT_EQ(xcclAllReduce(from, to, 10, xcclFloat32, xcclSum, comm, nullptr), xcclSuccess);
      EXPECT_EQ(xcclAllGather(from, to, 10, xcclFloat32, comm, nullptr), xcclSuccess);
      if (i == 0) {
        EXPECT_EQ(xcclBroadcast(from, to, 5, xcclFloat64, 1, comm, nullptr), xcclSuccess);
      }
      EXPECT_EQ(xcclAllReduce(from, to, 0, xcclFloat32, xcclSum, comm, nullptr), xcclSuccess);  // nothing
    }
  for (xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
  const CallLog log = Read(folder + "/calls.json");
  EXPECT_EQ(log.library, "xccl");
  EXPECT_EQ(log.process, getpid());
  EXPECT_EQ(log.rank, std::nullopt);
  ASSERT_EQ(log.communicators.size(), 3U);
  for (int r = 0; r < kRanks; ++r) {
    const LoggedCommunicator& rank = log.communicators[static_cast<size_t>(r)];
    EXPECT_EQ(rank.rank, Rank(r));
    EXPECT_EQ(rank.members, AllRanks(kRanks));
    EXPECT_EQ(Texts(rank),
              (std::vector<std::string>{"allreduce 40 float sum by allreduce.plan.json: 3",
                                        "allgather 120 float by allgather.plan.json: 3",
                                        "broadcast 40 double root 1 by broadcast.plan.json: 1"}));
  }
}

TEST(CallLog, MessagesAndOneRankAloneAreBuiltIn) {
  const std::string folder = FolderOf("log-built-in");
  const Logging logging(folder + "/calls.json");
  std::vector<xcclComm_t> comms(2);
  ASSERT_EQ(xcclCommInitAll(comms.data(), 2, nullptr), xcclSuccess);
  xcclGroupStart();
  for (xcclComm_t comm : comms) ASSERT_EQ(xcclCommConnect(comm), xcclSuccess);
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  std::vector<float> in(10, 1), out(10);
  xcclGroupStart();
  EXPECT_EQ(xcclSend(in.data(), 10, xcclFloat32, 1, comms[0], nullptr), xcclSuccess);
  EXPECT_EQ(xcclRecv(out.data(), 10, xcclFloat32, 0, comms[1], nullptr), xcclSuccess);
  EXPECT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  for (xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
  xcclComm_t alone = nullptr;
  ASSERT_EQ(xcclCommInitAll(&alone, 1, nullptr), xcclSuccess);
  EXPECT_EQ(xcclAllReduce(in.data(), out.data(), 10, xcclFloat32, xcclMax, alone, nullptr), xcclSuccess);
  EXPECT_EQ(xcclCommDestroy(alone), xcclSuccess);
  const CallLog log = Read(folder + "/calls.json");
  ASSERT_EQ(log.communicators.size(), 3U);
  for (size_t r = 0; r < 2; ++r)
    EXPECT_EQ(Texts(log.communicators[r]), std::vector<std::string>{"sendrecv 40 float by built-in: 1"});
  EXPECT_EQ(Texts(log.communicators[2]), std::vector<std::string>{"allreduce 40 float max by built-in: 1"});
}

// Four steps of a layer, each of which dispatches and combines twice: forward and backward. Rows of dispatch
// have scales of 16 bytes beside them.
TEST(CallLog, CallsOfExpertsAreCounted) {
  constexpr int kRanks = 4;
  const std::string folder = FolderOf("log-experts");
  const Logging logging(folder + "/calls.json");
  const std::string plan = MakeMoePlan(folder + "/moe.plan.json");
  RunMoeByThreads(plan);
  const CallLog log = Read(folder + "/calls.json");
  ASSERT_EQ(log.communicators.size(), 4U);
  constexpr int64_t kTokens[] = {6, 5, 0, 3};
  for (size_t r = 0; r < kRanks; ++r) {
    EXPECT_TRUE(log.communicators[r].rows.empty());
    std::vector<CountedExperts> experts = log.communicators[r].experts;
    for (CountedExperts& row : experts) EXPECT_GT(std::exchange(row.time_ps, 0), 0);
    const CountedExperts dispatches{.combines = false,
                                    .row_bytes = 64,
                                    .served_by = "moe.plan.json",
                                    .tokens = 8 * kTokens[r],
                                    .calls = 8,
                                    .timed = 8};
    const CountedExperts combines{.combines = true,
                                  .row_bytes = 48,
                                  .served_by = "moe.plan.json",
                                  .tokens = 8 * kTokens[r],
                                  .calls = 8,
                                  .timed = 8};
    EXPECT_EQ(experts, (std::vector<CountedExperts>{dispatches, combines}));
  }
}

TEST(CallLog, RanksOfASplitAreTheJobs) {
  const std::string folder = FolderOf("log-split");
  const Logging logging(folder + "/calls.json");
  std::vector<xcclComm_t> comms(4), halves(4);
  ASSERT_EQ(xcclCommInitAll(comms.data(), 4, nullptr), xcclSuccess);
  xcclGroupStart();
  for (int r = 0; r < 4; ++r)
    ASSERT_EQ(
        xcclCommSplit(comms[static_cast<size_t>(r)], r % 2, -r, &halves[static_cast<size_t>(r)], nullptr),
        xcclSuccess);
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  for (xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
  for (xcclComm_t comm : halves) EXPECT_EQ(xcclCommAbort(comm), xcclSuccess);  // writes as well
  const CallLog log = Read(folder + "/calls.json");
  ASSERT_EQ(log.communicators.size(), 8U);
  const std::vector<Rank> even = {Rank(2), Rank(0)}, odd = {Rank(3), Rank(1)};
  EXPECT_EQ(log.communicators[4].members, even);
  EXPECT_EQ(log.communicators[5].members, even);
  EXPECT_EQ(log.communicators[6].members, odd);
  EXPECT_EQ(log.communicators[7].members, odd);
}

TEST(CallLog, RanksOfASplitOfASplitAreTheJobs) {
  const std::string folder = FolderOf("log-split-again");
  const Logging logging(folder + "/calls.json");
  constexpr size_t kRanks = 4;
  std::vector<xcclComm_t> comms(kRanks), halves(kRanks), again(kRanks);
  ASSERT_EQ(xcclCommInitAll(comms.data(), kRanks, nullptr), xcclSuccess);
  const auto split = [](const std::vector<xcclComm_t>& from, std::vector<xcclComm_t>& to, int sign) {
    xcclGroupStart();
    for (int r = 0; r < static_cast<int>(kRanks); ++r)
      EXPECT_EQ(
          xcclCommSplit(from[static_cast<size_t>(r)], r % 2, sign * r, &to[static_cast<size_t>(r)], nullptr),
          xcclSuccess);
    EXPECT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  };
  split(comms, halves, -1);  // their ranks 0 and 1 are the job's 2 and 0, or 3 and 1
  split(halves, again, 1);
  for (const std::vector<xcclComm_t>& made : {comms, halves, again})
    for (xcclComm_t comm : made) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
  const CallLog log = Read(folder + "/calls.json");
  const auto with = [&](const std::vector<Rank>& members) {
    return std::ranges::count(log.communicators, members, &LoggedCommunicator::members);
  };
  EXPECT_EQ(with({Rank(2), Rank(0)}), 2);
  EXPECT_EQ(with({Rank(3), Rank(1)}), 2);
  EXPECT_EQ(with({Rank(0), Rank(2)}), 2);
  EXPECT_EQ(with({Rank(1), Rank(3)}), 2);
}

TEST(CallLog, ProcessesHaveAFileEachAndWriteItAtTheirEnd) {
  const std::string folder = FolderOf("log-processes");
  const Logging logging(folder + "/calls.json");
  const std::string book = MakeBook("logged-processes", 3, {CollectiveKind::kAllreduce});
  const std::string job = "logged" + std::to_string(getpid());
  InProcesses(3, [&](int rank, Shared& /*all*/) {
    setenv("XCCL_RANK", std::to_string(rank).c_str(), 1);
    setenv("XCCL_SIZE", "3", 1);
    setenv("XCCL_JOB", job.c_str(), 1);
    xcclComm_t comm = nullptr;
    float number = 1;
    if (!Is(xcclCommInitFromLauncher(&comm), xcclSuccess) ||
        !Is(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess) ||
        !Is(xcclAllReduce(&number, &number, 1, xcclFloat32, xcclSum, comm, nullptr), xcclSuccess) ||
        !Is(xcclCommSynchronize(comm), xcclSuccess))
      return false;
    if (rank > 0) return Is(xcclCommDestroy(comm), xcclSuccess);
    exit(0);  // as a program ends that destroys nothing
  });
  for (int r = 0; r < 3; ++r) {
    const CallLog log = Read(folder + "/calls.json." + std::to_string(r));
    EXPECT_EQ(log.rank, Rank(r));
    EXPECT_EQ(log.ranks, 3);
    ASSERT_EQ(log.communicators.size(), 1U);
    EXPECT_EQ(log.communicators[0].members, AllRanks(3));
    EXPECT_EQ(Texts(log.communicators[0]),
              std::vector<std::string>{"allreduce 4 float sum by allreduce.plan.json: 1"});
  }
}

TEST(CallLog, AFileThatCannotBeWrittenFailsNoCall) {
  const std::string file = FolderOf("log-unwritable") + "/file";
  ASSERT_EQ(WriteFileAtomically(file, ""), OkStatus());
  const Logging logging(file + "/calls.json");
  xcclComm_t alone = nullptr;
  testing::internal::CaptureStderr();
  ASSERT_EQ(xcclCommInitAll(&alone, 1, nullptr), xcclSuccess);
  float number = 1;
  EXPECT_EQ(xcclAllReduce(&number, &number, 1, xcclFloat32, xcclSum, alone, nullptr), xcclSuccess);
  EXPECT_EQ(xcclCommFinalize(alone), xcclSuccess);
  EXPECT_EQ(xcclCommDestroy(alone), xcclSuccess);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "xccl: XCCL_LOG_CALLS: " + file + "/calls.json: cannot write: Not a directory\n");
}

}  // namespace
}  // namespace xccl
