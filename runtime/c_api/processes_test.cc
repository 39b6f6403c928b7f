// Ranks that are processes, through the C API: children of the test.
#include "runtime/c_api/testing/processes.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/c_api/testing/books.h"
#include "runtime/host/owned_file.h"
#include "runtime/rdma/ofi/transport.h"
#include "runtime/xccl.h"

namespace xccl {
namespace {

xcclResult_t Sum(xcclComm_t comm, float* number, size_t count = 1) {
  return xcclAllReduce(number, number, count, xcclFloat32, xcclSum, comm, nullptr);
}

// Makes a communicator of processes that load a book.
bool Load(const xcclUniqueId& id, int ranks, int rank, const std::string& book, xcclComm_t& comm) {
  return Is(xcclCommInitRank(&comm, ranks, id, rank), xcclSuccess) &&
         Is(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess);
}

TEST(Processes, MeetByAnIdAndLeaveNothingBehind) {
  const auto files = [] {
    return std::distance(std::filesystem::directory_iterator("/dev/shm"),
                         std::filesystem::directory_iterator());
  };
  const auto before = files();
  const std::string book = MakeBook("ids", 3, {CollectiveKind::kAllreduce});
  InProcesses(3, [&](int rank, Shared& all) {
    xcclComm_t comm = nullptr;
    if (!Load(all.id, 3, rank, book, comm)) return false;
    std::vector<float> numbers(5000, static_cast<float>(rank + 1));
    return Is(Sum(comm, numbers.data(), numbers.size()), xcclSuccess) &&
           Is(xcclCommSynchronize(comm), xcclSuccess) && numbers == std::vector<float>(5000, 6.0f) &&
           Is(xcclCommDestroy(comm), xcclSuccess);
  });
  EXPECT_EQ(files(), before);
}

// Rounds of init, call and destroy, without a wait in between. A rank that is ahead must not open the region
// of the round before, and must not close connections with another host by which its last messages go.
void InitAgainAndAgain(const std::string& name, bool keeps, bool two_hosts) {
  const std::string book = MakeBook(name, 4, {CollectiveKind::kAllreduce});
  const std::string job = name + std::to_string(getpid());
  InProcesses(4, [&](int rank, Shared& /*all*/) {
    setenv("XCCL_RANK", std::to_string(rank).c_str(), 1);
    setenv("XCCL_SIZE", "4", 1);
    setenv("XCCL_JOB", job.c_str(), 1);
    if (two_hosts) setenv("XCCL_HOST_ID", rank < 2 ? "first" : "second", 1);
    std::vector<xcclComm_t> kept;
    for (int round = 0; round < 20; ++round) {
      xcclComm_t comm = nullptr;
      float number = 1;
      if (!Is(xcclCommInitFromLauncher(&comm), xcclSuccess) ||
          !Is(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess) ||
          !Is(Sum(comm, &number), xcclSuccess) || !Is(xcclCommSynchronize(comm), xcclSuccess) || number != 4)
        return false;
      if (!keeps && !Is(xcclCommDestroy(comm), xcclSuccess)) return false;
      if (keeps) kept.push_back(comm);
    }
    for (xcclComm_t comm : kept)
      if (!Is(xcclCommDestroy(comm), xcclSuccess)) return false;
    return true;
  });
}

TEST(Processes, InitFromLauncherAgainAndAgain) {
  InitAgainAndAgain("again", false, false);
  InitAgainAndAgain("again-kept", true, false);
  if (!ofi::Available().ok()) GTEST_SKIP() << ofi::Available().message();
  InitAgainAndAgain("again-hosts", false, true);
  InitAgainAndAgain("again-hosts-kept", true, true);
}

// Both meet at one address, and every rank names them in another order.
TEST(Processes, TwoFromLauncherMeetInOneGroup) {
  const std::string book = MakeBook("two-at-once", 3, {CollectiveKind::kAllreduce});
  const std::string job = "two-at-once" + std::to_string(getpid());
  InProcesses(3, [&](int rank, Shared& /*all*/) {
    setenv("XCCL_RANK", std::to_string(rank).c_str(), 1);
    setenv("XCCL_SIZE", "3", 1);
    setenv("XCCL_JOB", job.c_str(), 1);
    std::vector<xcclComm_t> comms(4);
    for (xcclComm_t& comm : comms)
      if (!Is(xcclCommInitFromLauncher(&comm), xcclSuccess) ||
          !Is(xcclCommSetTimeLimit(comm, 20), xcclSuccess))
        return false;
    xcclGroupStart();
    for (size_t i = 0; i < comms.size(); ++i)
      if (!Is(xcclCommLoadPlanBook(comms[(i + static_cast<size_t>(rank)) % comms.size()], book.c_str()),
              xcclSuccess))
        return false;
    if (!Is(xcclGroupEnd(), xcclSuccess)) return false;
    for (size_t i = 0; i < comms.size(); ++i) {
      const float own = static_cast<float>(i + 1);
      float number = own;
      if (!Is(Sum(comms[i], &number), xcclSuccess) || !Is(xcclCommSynchronize(comms[i]), xcclSuccess) ||
          number != 3 * own)
        return false;
    }
    for (xcclComm_t comm : comms)
      if (!Is(xcclCommDestroy(comm), xcclSuccess)) return false;
    return true;
  });
}

TEST(Processes, TwoThatClaimOneRankAreRefused) {
  const std::string book = MakeBook("claims", 4, {CollectiveKind::kAllreduce});
  InProcesses(4, [&](int process, Shared& all) {
    const int rank = process == 2 ? 1 : process;
    xcclComm_t comm = nullptr;
    if (!Is(xcclCommInitRank(&comm, 4, all.id, rank), xcclSuccess)) return false;
    const xcclResult_t result = xcclCommLoadPlanBook(comm, book.c_str());
    const std::string text = xcclGetLastError(comm);
    // The process that made the id tells the others, too.
    ++all.told;
    while (process == 0 && all.told < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Is(result, xcclInvalidUsage) &&
           (text.find("rank 1") != std::string::npos || Is(text, "... rank 1 ..."));
  });
}

TEST(Processes, ALoadThatFailsOnOneRankFailsOnAllAndMayBeTriedAgain) {
  const std::string book = MakeBook("there", 3, {CollectiveKind::kAllreduce});
  const std::string other = MakeBook("other", 3, {CollectiveKind::kAllgather});
  InProcesses(3, [&](int rank, Shared& all) {
    xcclComm_t comm = nullptr;
    if (!Is(xcclCommInitRank(&comm, 3, all.id, rank), xcclSuccess)) return false;
    const std::string missing = "/nowhere/index.json: cannot read: No such file or directory";
    if (!Is(xcclCommLoadPlanBook(comm, rank == 1 ? "/nowhere" : book.c_str()), xcclInvalidUsage) ||
        !Is(xcclGetLastError(comm), rank == 1 ? missing : "rank 1: " + missing))
      return false;
    if (!Is(xcclCommLoadPlanBook(comm, (rank == 2 ? other : book).c_str()), xcclInvalidUsage) ||
        !Is(xcclGetLastError(comm),
            "rank 2: loads another plan book than rank 0; expected the same on all ranks"))
      return false;
    float number = 1;
    return Is(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess) && Is(Sum(comm, &number), xcclSuccess) &&
           Is(xcclCommSynchronize(comm), xcclSuccess) && number == 3 &&
           Is(xcclCommDestroy(comm), xcclSuccess);
  });
}

// The watchdog of a program asks idle ranks too.
TEST(Processes, IdleRanksHearThatAProcessWasKilled) {
  const std::string book = MakeBook("idle", 3, {CollectiveKind::kAllreduce});
  InProcesses(3, [&](int rank, Shared& all) {
    xcclComm_t comm = nullptr;
    if (!Load(all.id, 3, rank, book, comm)) return false;
    if (rank == 2) std::_Exit(0);  // without a farewell
    xcclResult_t error = xcclSuccess;
    for (int i = 0; i < 500 && error == xcclSuccess; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (!Is(xcclCommGetAsyncError(comm, &error), xcclSuccess)) return false;
    }
    const std::string text = xcclGetLastError(comm);
    return Is(error, xcclRemoteError) &&
           (text.find("rank 2") != std::string::npos || Is(text, "... rank 2 ..."));
  });
}

TEST(Processes, CallsThatDifferAreNamedOnAllRanks) {
  const std::string book = MakeBook("differ", 2, {CollectiveKind::kAllreduce});
  InProcesses(2, [&](int rank, Shared& all) {
    xcclComm_t comm = nullptr;
    if (!Load(all.id, 2, rank, book, comm)) return false;
    std::vector<float> numbers(1000, 1);
    if (!Is(Sum(comm, numbers.data(), rank == 0 ? 1000 : 10), xcclSuccess) ||
        !Is(xcclCommSynchronize(comm), xcclInvalidUsage))
      return false;
    const std::string long_call = "allreduce of 1000 float, sum", short_call = "allreduce of 10 float, sum";
    const std::string text = xcclGetLastError(comm);
    return text == "rank 1: call 1 is " + short_call + "; expected call 1, " + long_call + ", as on rank 0" ||
           Is(text, "rank 0: call 1 is " + long_call + "; expected call 1, " + short_call + ", as on rank 1");
  });
}

TEST(Processes, ARankThatHasLeftIsNamed) {
  const std::string book = MakeBook("left", 2, {CollectiveKind::kAllreduce});
  for (const bool two_hosts : {false, true}) {
    if (two_hosts && !ofi::Available().ok()) GTEST_SKIP() << ofi::Available().message();
    const std::string job = "left-" + std::to_string(getpid());
    InProcesses(2, [&](int rank, Shared& all) {
      setenv("XCCL_RANK", std::to_string(rank).c_str(), 1);
      setenv("XCCL_SIZE", "2", 1);
      setenv("XCCL_JOB", job.c_str(), 1);
      if (two_hosts) setenv("XCCL_HOST_ID", rank == 0 ? "first" : "second", 1);
      xcclComm_t comm = nullptr;
      float number = 1;
      if (!Is(xcclCommInitFromLauncher(&comm), xcclSuccess) ||
          !Is(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess) ||
          !Is(Sum(comm, &number), xcclSuccess) || !Is(xcclCommSynchronize(comm), xcclSuccess))
        return false;
      if (rank == 1) {  // its process stays
        const bool destroyed = Is(xcclCommDestroy(comm), xcclSuccess);
        while (all.told == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return destroyed;
      }
      const bool told = Is(Sum(comm, &number), xcclSuccess) && Is(xcclCommSynchronize(comm), xcclRemoteError);
      ++all.told;
      return told && Is(xcclGetLastError(comm),
                        "rank 1: has left after call 1; expected it in call 2, allreduce of 1 float, sum, "
                        "with rank 0");
    });
  }
}

// A call of which nobody has asked how it ended fails the destroy of its communicator; ranks that know need
// not hear it twice.
TEST(Processes, ADestroyReturnsAFailureThatNobodyWasTold) {
  const std::string book = MakeBook("untold", 3, {CollectiveKind::kAllreduce});
  InProcesses(3, [&](int rank, Shared& all) {
    xcclComm_t comm = nullptr;
    if (!Load(all.id, 3, rank, book, comm)) return false;
    float number = 1;
    if (rank == 2) return Is(xcclCommDestroy(comm), xcclSuccess);
    if (!Is(Sum(comm, &number), xcclSuccess)) return false;
    if (rank == 1) return Is(xcclCommDestroy(comm), xcclRemoteError);
    return Is(xcclCommSynchronize(comm), xcclRemoteError) && Is(xcclCommDestroy(comm), xcclSuccess);
  });
}

// Rank 0 of one host writes to two ranks of another, which leave one after the other.
TEST(Processes, AMessageToARankThatHasLeftFails) {
  if (!ofi::Available().ok()) GTEST_SKIP() << ofi::Available().message();
  const std::string job = "to-who-has-left-" + std::to_string(getpid());
  InProcesses(4, [&](int rank, Shared& all) {
    setenv("XCCL_RANK", std::to_string(rank).c_str(), 1);
    setenv("XCCL_SIZE", "4", 1);
    setenv("XCCL_JOB", job.c_str(), 1);
    setenv("XCCL_HOST_ID", rank < 2 ? "first" : "second", 1);
    xcclComm_t comm = nullptr;
    if (!Is(xcclCommInitFromLauncher(&comm), xcclSuccess) || !Is(xcclCommConnect(comm), xcclSuccess))
      return false;
    const auto await = [&](int turn) {
      while (all.told < turn) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    bool right = true;
    if (rank >= 2) {
      await(rank - 2);
      right = Is(xcclCommDestroy(comm), xcclSuccess);
      ++all.told;
    } else {
      await(2);
      float numbers[2] = {};
      if (rank == 0)
        right = Is(xcclSend(numbers, 1, xcclFloat32, 2, comm, nullptr), xcclSuccess) &&
                Is(xcclCommSynchronize(comm), xcclRemoteError);
      if (rank == 1)
        right = Is(xcclRecv(numbers, 1, xcclFloat32, 3, comm, nullptr), xcclSuccess) &&
                Is(xcclCommSynchronize(comm), xcclRemoteError);
      right = right && std::string(xcclGetLastError(comm)).starts_with("rank ") &&
              Is(xcclCommDestroy(comm), xcclSuccess);
    }
    await(2);
    return right;
  });
}

// True if the ranks of a child sum up to `sum`. Each gives 1 + its rank in the parent.
bool SumsTo(xcclComm_t comm, const std::string& book, int rank, float sum) {
  auto number = static_cast<float>(rank + 1);
  return Is(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess) && Is(Sum(comm, &number), xcclSuccess) &&
         Is(xcclCommSynchronize(comm), xcclSuccess) && number == sum;
}

TEST(Processes, SplitWithAndWithoutABookLoaded) {
  const std::string all_ranks = MakeBook("split5", 5, {CollectiveKind::kAllreduce});
  const std::string pairs = MakeBook("split2", 2, {CollectiveKind::kAllreduce});
  for (const bool loaded : {false, true}) {
    InProcesses(5, [&](int rank, Shared& all) {
      const std::vector<int> colors = {1, 0, XCCL_SPLIT_NOCOLOR, 1, 0}, keys = {9, 4, 0, 8, 4};
      const std::vector<int> expected = {1, 0, -1, 0, 1};
      const std::vector<float> sums = {5, 7, 0, 5, 7};
      xcclComm_t comm = nullptr, child = nullptr;
      if (!Is(xcclCommInitRank(&comm, 5, all.id, rank), xcclSuccess)) return false;
      if (loaded && !Is(xcclCommLoadPlanBook(comm, all_ranks.c_str()), xcclSuccess)) return false;
      if (!Is(xcclCommSplit(comm, colors[rank], keys[rank], &child, nullptr), xcclSuccess)) return false;
      if (rank == 2)
        return child == nullptr && SumsTo(comm, all_ranks, rank, 15) &&
               Is(xcclCommDestroy(comm), xcclSuccess);
      int own = 0;
      return Is(xcclCommUserRank(child, &own), xcclSuccess) && own == expected[rank] &&
             SumsTo(child, pairs, rank, sums[rank]) && SumsTo(comm, all_ranks, rank, 15) &&
             Is(xcclCommDestroy(child), xcclSuccess) && Is(xcclCommDestroy(comm), xcclSuccess);
    });
  }
}

TEST(Processes, ShrinkWithoutARankThatWasKilled) {
  const std::string all_ranks = MakeBook("shrink4", 4, {CollectiveKind::kAllreduce});
  const std::string three = MakeBook("shrink3", 3, {CollectiveKind::kAllreduce});
  const std::string pairs = MakeBook("shrink2", 2, {CollectiveKind::kAllreduce});
  InProcesses(4, [&](int rank, Shared& all) {
    xcclComm_t comm = nullptr, child = nullptr;
    if (!Is(xcclCommInitRank(&comm, 4, all.id, rank), xcclSuccess)) return false;
    const int first[] = {0, 2}, killed[] = {2};
    if (!Is(xcclCommShrink(comm, first, 2, &child, nullptr, XCCL_SHRINK_DEFAULT),
            rank % 2 == 1 ? xcclInvalidUsage : xcclInvalidArgument) ||
        !Is(xcclCommLoadPlanBook(comm, all_ranks.c_str()), xcclSuccess))
      return false;
    // Ranks 1 and 3 without the others, who do not know.
    if (rank % 2 == 1 &&
        (!Is(xcclCommShrink(comm, first, 2, &child, nullptr, XCCL_SHRINK_DEFAULT), xcclSuccess) ||
         !SumsTo(child, pairs, rank, 6) || !Is(xcclCommDestroy(child), xcclSuccess)))
      return false;
    ++all.told;
    while (rank == 2 && all.told < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (rank == 2) std::_Exit(0);  // without a farewell
    float number = 1;
    return Is(Sum(comm, &number), xcclSuccess) && Is(xcclCommSynchronize(comm), xcclRemoteError) &&
           Is(xcclCommShrink(comm, killed, 1, &child, nullptr, XCCL_SHRINK_DEFAULT), xcclRemoteError) &&
           Is(xcclCommShrink(comm, killed, 1, &child, nullptr, XCCL_SHRINK_ABORT), xcclSuccess) &&
           SumsTo(child, three, rank, 7) && Is(xcclCommDestroy(child), xcclSuccess) &&
           Is(xcclCommDestroy(comm), xcclSuccess);
  });
}

TEST(Processes, SendAndReceiveInACycle) {
  constexpr int kRanks = 4;
  InProcesses(kRanks, [&](int rank, Shared& all) {
    xcclComm_t comm = nullptr;
    if (!Is(xcclCommInitRank(&comm, kRanks, all.id, rank), xcclSuccess) ||
        !Is(xcclCommConnect(comm), xcclSuccess))
      return false;
    const int next = (rank + 1) % kRanks, before = (rank + kRanks - 1) % kRanks;
    // More than the slots hold.
    std::vector<float> out(1'000'000, static_cast<float>(rank)), own(out.size());
    std::vector<float> from_before(out.size()), from_next(out.size());
    for (int round = 0; round < 3; ++round) {
      const size_t count = round == 1 ? 5 : out.size();
      bool made = Is(xcclGroupStart(), xcclSuccess);
      for (const int peer : {next, rank, before})
        made = made && Is(xcclSend(out.data(), count, xcclFloat32, peer, comm, nullptr), xcclSuccess);
      for (const auto& [peer, in] : {std::pair(before, &from_before), {rank, &own}, {next, &from_next}})
        made = made && Is(xcclRecv(in->data(), count, xcclFloat32, peer, comm, nullptr), xcclSuccess);
      if (!made || !Is(xcclGroupEnd(), xcclSuccess) || !Is(xcclCommSynchronize(comm), xcclSuccess) ||
          own != out || from_before[count - 1] != static_cast<float>(before) ||
          from_next[count - 1] != static_cast<float>(next))
        return false;
    }
    // Rank r gives rank d r + 1 elements.
    const std::vector<size_t> sends(kRanks, static_cast<size_t>(rank) + 1), receives = {1, 2, 3, 4};
    const std::vector<size_t> zero(kRanks, 0), places = {0, 1, 3, 6};
    std::vector<float> parts(10);
    if (!Is(xcclAlltoAllv(out.data(), sends.data(), zero.data(), parts.data(), receives.data(), places.data(),
                          xcclFloat32, comm, nullptr),
            xcclSuccess) ||
        !Is(xcclCommSynchronize(comm), xcclSuccess))
      return false;
    return parts == std::vector<float>{0, 1, 1, 2, 2, 2, 3, 3, 3, 3} &&
           Is(xcclCommDestroy(comm), xcclSuccess);
  });
}

TEST(Processes, MessagesThatDifferAreNamedOnBothRanks) {
  InProcesses(2, [&](int rank, Shared& all) {
    xcclComm_t comm = nullptr;
    if (!Is(xcclCommInitRank(&comm, 2, all.id, rank), xcclSuccess) || !Is(xcclCommConnect(comm), xcclSuccess))
      return false;
    std::vector<float> data(1'000'000);
    const xcclResult_t made = rank == 0 ? xcclSend(data.data(), data.size(), xcclFloat32, 1, comm, nullptr)
                                        : xcclRecv(data.data(), 10, xcclFloat32, 0, comm, nullptr);
    return Is(made, xcclSuccess) && Is(xcclCommSynchronize(comm), xcclInvalidUsage) &&
           Is(xcclGetLastError(comm),
              "rank 0: message 1 to rank 1 is sendrecv of 1000000 float; rank 1 expected sendrecv of 10 "
              "float");
  });
}

// The last test, since it starts threads in the test's own process.
TEST(Processes, AnAbortWakesALoadThatWaitsWithoutEnd) {
  const std::string book = MakeBook("alone", 2, {CollectiveKind::kAllreduce});
  xcclUniqueId id = {};
  ASSERT_EQ(xcclGetUniqueId(&id), xcclSuccess) << xcclGetLastError(nullptr);
  xcclComm_t comm = nullptr;
  ASSERT_EQ(xcclCommInitRank(&comm, 2, id, 0), xcclSuccess);
  ASSERT_EQ(xcclCommSetTimeLimit(comm, 0), xcclSuccess);
  std::thread loader([&] {
    EXPECT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclRemoteError);
    EXPECT_STREQ(xcclGetLastError(nullptr), "rank 0: aborted");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(xcclCommAbort(comm), xcclSuccess);
  loader.join();
}

// Those who stay are no partners of each other, and those between them have ended.
TEST(Processes, ShrinkToRanksThatOnlyEndedOnesConnect) {
  const std::string book = MakeBook("six", 6, {CollectiveKind::kAllreduce});
  const std::string pair = MakeBook("two_of_six", 2, {CollectiveKind::kAllreduce});
  void* const memory = mmap(nullptr, 6 * sizeof(std::atomic<pid_t>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const processes = static_cast<std::atomic<pid_t>*>(memory);
  InProcesses(6, [&](int rank, Shared& all) {
    processes[rank] = getpid();
    xcclComm_t comm = nullptr, rest = nullptr;
    if (!Load(all.id, 6, rank, book, comm)) return false;
    if (rank % 3 != 0) {
      while (all.told < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return true;  // without a goodbye
    }
    std::vector<OwnedFile> others;
    const std::vector<int> ended = {1, 2, 4, 5};
    for (const int other : ended) others.push_back(WatchProcess(processes[other]));
    ++all.told;
    for (const OwnedFile& other : others)
      while (other.open() && !HasEnded(other)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    float number = 1;
    return Is(xcclCommShrink(comm, ended.data(), 4, &rest, nullptr, XCCL_SHRINK_ABORT), xcclSuccess) &&
           Is(xcclCommLoadPlanBook(rest, pair.c_str()), xcclSuccess) && Is(Sum(rest, &number), xcclSuccess) &&
           Is(xcclCommSynchronize(rest), xcclSuccess) && number == 2 &&
           Is(xcclCommDestroy(rest), xcclSuccess) && Is(xcclCommDestroy(comm), xcclSuccess);
  });
  munmap(memory, 6 * sizeof(std::atomic<pid_t>));
}

// Rank 1, which is to stay, has ended too; no limit is set.
TEST(Processes, ShrinkWithARankThatHasEndedNamesIt) {
  const std::string book = MakeBook("four", 4, {CollectiveKind::kAllreduce});
  InProcesses(4, [&](int rank, Shared& all) {
    xcclComm_t comm = nullptr, rest = nullptr;
    if (!Load(all.id, 4, rank, book, comm)) return false;
    if (rank < 2) return true;  // without a goodbye
    const int ended[] = {0};
    const bool named =
        Is(xcclCommShrink(comm, ended, 1, &rest, nullptr, XCCL_SHRINK_ABORT), xcclRemoteError) &&
        (std::string(xcclGetLastError(nullptr)).find("shrink without 0: rank 1") != std::string::npos ||
         Is(xcclGetLastError(nullptr), "... shrink without 0: rank 1 ..."));
    ++all.told;
    while (all.told < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return named;
  });
}

}  // namespace
}  // namespace xccl
