// Expert dispatch and combine through the C API: by threads, processes, and processes of two hosts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/c_api/testing/moe_plan.h"
#include "runtime/c_api/testing/moe_step.h"
#include "runtime/c_api/testing/processes.h"
#include "runtime/rdma/ofi/transport.h"
#include "runtime/xccl.h"

namespace xccl {
namespace {

constexpr int kRanks = 4;

std::string PlanFile(const std::string& name, int32_t tokens = 8) {
  return MakeMoePlan(testing::TempDir() + "/" + name + std::to_string(getpid()) + ".plan.json", tokens);
}

TEST(Experts, ALayerRunsForwardAndBackwardByThreads) { RunMoeByThreads(PlanFile("threads")); }

// Ranks that a launcher started, on one host or on two.
void RunByProcesses(const std::string& name, int hosts) {
  const std::string plan = PlanFile(name);
  const std::string job = name + std::to_string(getpid());
  InProcesses(kRanks, [&](int rank, Shared& /*all*/) {
    setenv("XCCL_RANK", std::to_string(rank).c_str(), 1);
    setenv("XCCL_SIZE", std::to_string(kRanks).c_str(), 1);
    setenv("XCCL_JOB", job.c_str(), 1);
    if (hosts > 1) setenv("XCCL_HOST_ID", ("host" + std::to_string(rank * hosts / kRanks)).c_str(), 1);
    xcclComm_t comm = nullptr;
    return Is(xcclCommInitFromLauncher(&comm), xcclSuccess) && RunMoeStep(comm, plan.c_str()) == 0 &&
           Is(xcclCommDestroy(comm), xcclSuccess);
  });
}

TEST(Experts, ALayerRunsByProcesses) { RunByProcesses("processes", 1); }

TEST(Experts, ALayerRunsByProcessesOfSeveralHosts) {
  if (!ofi::Available().ok()) GTEST_SKIP() << ofi::Available().message();
  RunByProcesses("hosts2", 2);
  RunByProcesses("hosts4", 4);
}

// A rank's dispatch of `tokens` tokens without rows. Choices stay, since the call reads them later.
xcclResult_t CountAlone(xcclExperts_t experts, const std::vector<int>& choices, int* rows,
                        size_t tokens = 1) {
  xcclDispatchIn_t in = XCCL_DISPATCH_IN_INITIALIZER;
  xcclDispatchOut_t out = XCCL_DISPATCH_OUT_INITIALIZER;
  in.tokens = tokens;
  in.choices = choices.data();
  in.choiceType = xcclInt32;
  out.numRows = rows;
  return xcclDispatch(&in, &out, experts, nullptr);
}

TEST(Experts, AKilledRankEndsTheOthersWithAnError) {
  const std::string plan = PlanFile("killed");
  InProcesses(kRanks, [&](int rank, Shared& all) {
    xcclComm_t comm = nullptr;
    xcclExperts_t experts = nullptr;
    if (!Is(xcclCommInitRank(&comm, kRanks, all.id, rank), xcclSuccess) ||
        !Is(xcclCommLoadExperts(comm, plan.c_str()), xcclSuccess) ||
        !Is(xcclExpertsCreate(&experts, comm), xcclSuccess))
      return false;
    const std::vector<int> choices = {0, -1};
    int rows = -1;
    if (!Is(CountAlone(experts, choices, &rows), xcclSuccess) ||
        !Is(xcclCommSynchronize(comm), xcclSuccess) || rows != (rank == 0 ? kRanks : 0))
      return false;
    ++all.told;
    while (rank == 1 && all.told < kRanks) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (rank == 1) std::_Exit(0);  // without a farewell
    CountAlone(experts, choices, &rows);
    return Is(xcclCommSynchronize(comm), xcclRemoteError) &&
           std::string(xcclGetLastError(comm)).find("rank 1") != std::string::npos;
  });
}

// Communicators of threads with a plan each, and a handle.
class ExpertsOfThreads : public testing::Test {
 protected:
  void SetUp() override {
    plan_ = PlanFile("misuse");
    ASSERT_EQ(xcclCommInitAll(comms_.data(), kRanks, nullptr), xcclSuccess);
    xcclGroupStart();
    for (const xcclComm_t comm : comms_) xcclCommLoadExperts(comm, plan_.c_str());
    ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
    for (int rank = 0; rank < kRanks; ++rank)
      ASSERT_EQ(xcclExpertsCreate(&experts_[rank], comms_[rank]), xcclSuccess);
  }
  void TearDown() override {
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(xcclExpertsDestroy(experts_[rank]), xcclSuccess);
      xcclCommDestroy(comms_[rank]);
    }
  }
  static void ExpectText(xcclResult_t result, xcclResult_t expected, const std::string& text) {
    EXPECT_EQ(result, expected);
    EXPECT_EQ(xcclGetLastError(nullptr), text);
  }

  std::string plan_;
  std::vector<xcclComm_t> comms_ = std::vector<xcclComm_t>(kRanks);
  std::vector<xcclExperts_t> experts_ = std::vector<xcclExperts_t>(kRanks);
};

TEST_F(ExpertsOfThreads, MisuseIsRefusedAtOnceAndTheCommunicatorGoesOn) {
  xcclDispatchIn_t in = XCCL_DISPATCH_IN_INITIALIZER;
  xcclDispatchOut_t out = XCCL_DISPATCH_OUT_INITIALIZER;
  std::vector<char> rows(4096);
  const auto dispatch = [&](const auto& change) {
    xcclDispatchIn_t changed = in;
    xcclDispatchOut_t changed_out = out;
    change(changed, changed_out);
    return xcclDispatch(&changed, &changed_out, experts_[0], nullptr);
  };
  using In = xcclDispatchIn_t;
  using Out = xcclDispatchOut_t;
  ExpectText(xcclDispatch(nullptr, &out, experts_[0], nullptr), xcclInvalidArgument, "dispatch: in is null");
  ExpectText(xcclDispatch(&in, nullptr, experts_[0], nullptr), xcclInvalidArgument, "dispatch: out is null");
  ExpectText(xcclDispatch(&in, &out, nullptr, nullptr), xcclInvalidArgument, "the handle of experts is null");
  ExpectText(dispatch([](In& i, Out&) { i.size = 8; }), xcclInvalidArgument,
             "dispatch: in.size is 8; expected " + std::to_string(sizeof(In)) +
                 "; hint: XCCL_DISPATCH_IN_INITIALIZER");
  ExpectText(dispatch([](In&, Out& o) { o.size = 0; }), xcclInvalidArgument,
             "dispatch: out.size is 0; expected " + std::to_string(sizeof(Out)) +
                 "; hint: XCCL_DISPATCH_OUT_INITIALIZER");
  ExpectText(dispatch([](In& i, Out&) { i.rowBytes = 24; }), xcclInvalidArgument,
             "dispatch: rows of 24 bytes with scales of 0; expected a multiple of 16 together, each at most "
             "268435456");
  ExpectText(dispatch([](In& i, Out&) { i.tokens = 9; }), xcclInvalidArgument,
             "dispatch: 9 tokens; expected at most 8, the plan's");
  ExpectText(dispatch([](In& i, Out&) {
               i.tokens = 1;
               i.rowBytes = 16;
             }),
             xcclInvalidArgument, "dispatch: in.rows is null");
  ExpectText(dispatch([](In& i, Out&) { i.tokens = 1; }), xcclInvalidArgument,
             "dispatch: in.choices is null; hint: sameChoices");
  ExpectText(dispatch([&](In& i, Out&) {
               i.choices = rows.data();
               i.choiceType = xcclFloat32;
             }),
             xcclInvalidArgument, "dispatch: choices of data type 7; expected xcclInt32 or xcclInt64");
  ExpectText(dispatch([](In& i, Out& o) {
               i.scaleBytes = 16;
               o.maxRows = 4;
             }),
             xcclInvalidArgument, "dispatch: out.scales is null");
  ExpectText(dispatch([&](In& i, Out& o) {
               i.tokens = 4;
               i.choices = rows.data();
               i.rows = rows.data();
               i.rowBytes = 16;
               o.rows = rows.data() + 48;
               o.maxRows = 4;
             }),
             xcclInvalidArgument,
             "dispatch: rows that are read and rows that are written overlap; expected them apart");
  ExpectText(dispatch([](In& i, Out&) { i.sameChoices = 1; }), xcclInvalidUsage,
             "dispatch: in.sameChoices is set; expected choices in the handle's first dispatch");
  ExpectText(xcclCombine(rows.data(), rows.data(), 4, xcclFloat32, xcclEntries, experts_[0], nullptr),
             xcclInvalidUsage, "combine: the handle has no ways; expected a dispatch with it before");
  ExpectText(xcclCombine(nullptr, nullptr, 4, xcclFloat8e4m3, xcclEntries, experts_[0], nullptr),
             xcclInvalidUsage, "combine: f8e4m3 rows; expected float, half or bfloat16");
  ExpectText(
      xcclCombine(nullptr, nullptr, 4, static_cast<xcclDataType_t>(77), xcclEntries, experts_[0], nullptr),
      xcclInvalidArgument, "data type 77; expected 0 to 11");
  ExpectText(
      xcclCombine(nullptr, nullptr, 4, xcclFloat32, static_cast<xcclExpertRows_t>(3), experts_[0], nullptr),
      xcclInvalidArgument, "combine: rows of kind 3; expected 0 to 2");
  ExpectText(xcclExpertsGetSizes(experts_[0], nullptr), xcclInvalidArgument, "sizes is null");
  ExpectText(xcclCommLoadExperts(comms_[0], nullptr), xcclInvalidArgument, "the plan's file is null");

  int seen[kRanks];
  const std::vector<int> choices[kRanks] = {{0, -1}, {1, -1}, {2, -1}, {3, -1}};
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(CountAlone(experts_[rank], choices[rank], &seen[rank]), xcclSuccess);
  ExpectText(CountAlone(experts_[0], choices[0], &seen[0], 9), xcclInvalidArgument,
             "dispatch: 9 tokens; expected at most 8, the plan's");
  ExpectText(dispatch([](In& i, Out&) { i.sameChoices = 1; }), xcclInvalidArgument,
             "dispatch: 0 tokens; expected 1, as the handle has");
  ExpectText(xcclCombine(nullptr, nullptr, 4, xcclFloat32, xcclEntries, experts_[0], nullptr),
             xcclInvalidArgument, "combine: the sums are null");
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(xcclCommSynchronize(comms_[rank]), xcclSuccess) << xcclGetLastError(comms_[rank]);
  EXPECT_EQ(seen[0], 2);  // ranks 0 and 1 chose its experts 0 and 1
}

TEST_F(ExpertsOfThreads, HandlesThatAreGoneAreRefused) {
  xcclExperts_t gone = nullptr;
  ASSERT_EQ(xcclExpertsCreate(&gone, comms_[0]), xcclSuccess);
  ASSERT_EQ(xcclExpertsDestroy(gone), xcclSuccess);
  const std::string text = "no such handle of experts: it was destroyed, or never made";
  ExpectText(xcclExpertsDestroy(gone), xcclInvalidArgument, text);
  ExpectText(xcclCombine(nullptr, nullptr, 0, xcclFloat32, xcclRows, gone, nullptr), xcclInvalidArgument,
             text);
  xcclComm_t alone = nullptr;
  ASSERT_EQ(xcclCommInitAll(&alone, 1, nullptr), xcclSuccess);
  ExpectText(xcclExpertsCreate(&gone, alone), xcclInvalidUsage,
             "no plan of experts is loaded; hint: xcclCommLoadExperts on all ranks");
  ExpectText(xcclCommLoadExperts(alone, plan_.c_str()), xcclInvalidUsage,
             plan_ + ": a plan for 4 ranks; expected 1");
  const std::string other = testing::TempDir() + "/no.plan.json";
  std::ofstream(other) << "{}";
  EXPECT_EQ(xcclCommLoadExperts(alone, other.c_str()), xcclInvalidUsage);
  EXPECT_EQ(xcclCommLoadExperts(alone, "/no/such/file"), xcclInvalidUsage);
  xcclCommDestroy(alone);
}

TEST_F(ExpertsOfThreads, AGroupRunsItsCallsInOrder) {
  int seen[kRanks] = {-1, -1, -1, -1};
  float sums[kRanks] = {-1, -1, -1, -1};
  const float ones[kRanks] = {1, 1, 1, 1};
  const std::vector<int> choices = {5, -1};
  xcclGroupStart();
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(CountAlone(experts_[rank], choices, &seen[rank]), xcclSuccess);
    EXPECT_EQ(xcclCombine(ones, &sums[rank], 1, xcclFloat32, xcclRows, experts_[rank], nullptr), xcclSuccess);
  }
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  for (const xcclComm_t comm : comms_) ASSERT_EQ(xcclCommSynchronize(comm), xcclSuccess);
  EXPECT_EQ(std::vector<int>(seen, seen + kRanks), (std::vector<int>{0, 0, 4, 0}));
  EXPECT_EQ(std::vector<float>(sums, sums + kRanks), (std::vector<float>{1, 1, 1, 1}));
}

TEST_F(ExpertsOfThreads, ChoicesThatDoNotFitEndAllRanks) {
  int seen = 0;
  const std::vector<int> right = {0, -1}, wrong = {8, -1};
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(CountAlone(experts_[rank], rank == 3 ? wrong : right, &seen), xcclSuccess);
  for (const xcclComm_t comm : comms_) {
    EXPECT_EQ(xcclCommSynchronize(comm), xcclInvalidUsage);
    EXPECT_STREQ(xcclGetLastError(comm), "rank 3, token 0: expert 8; expected -1 to 7");
  }
  EXPECT_EQ(CountAlone(experts_[0], right, &seen), xcclInvalidUsage);
}

TEST_F(ExpertsOfThreads, RowsWithoutRoomEndAllRanks) {
  int choices[2] = {0, -1};
  char row[16] = {};
  std::vector<std::vector<char>> received(kRanks, std::vector<char>(3 * 16));
  for (int rank = 0; rank < kRanks; ++rank) {
    xcclDispatchIn_t in = XCCL_DISPATCH_IN_INITIALIZER;
    xcclDispatchOut_t out = XCCL_DISPATCH_OUT_INITIALIZER;
    in.tokens = 1;
    in.choices = choices;
    in.choiceType = xcclInt32;
    in.rows = row;
    in.rowBytes = 16;
    out.rows = received[rank].data();
    out.maxRows = 3;
    EXPECT_EQ(xcclDispatch(&in, &out, experts_[rank], nullptr), xcclSuccess);
  }
  EXPECT_EQ(xcclCommSynchronize(comms_[0]), xcclInvalidUsage);
  EXPECT_STREQ(xcclGetLastError(comms_[0]),
               "rank 0: dispatch: 4 rows come; expected at most 3, as out.maxRows says");
}

}  // namespace
}  // namespace xccl
