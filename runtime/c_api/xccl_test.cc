#include "runtime/xccl.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/no_threads.h"
#include "base/version.h"
#include "runtime/c_api/testing/books.h"

namespace xccl {
namespace {

TEST(Xccl, AThreadThatCannotBeHadIsAResultCodeAndNoException) {
  const std::string book = MakeBook("no_threads", 1, {CollectiveKind::kAllgather});
  xcclComm_t comm = nullptr;
  ASSERT_EQ(xcclCommInitAll(&comm, 1, nullptr), xcclSuccess);
  {
    const NoThreads none;
    EXPECT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclSystemError);
    EXPECT_STREQ(xcclGetLastError(nullptr), "cannot start a thread: Resource temporarily unavailable");
  }
  EXPECT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess) << xcclGetLastError(nullptr);
  EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

TEST(Xccl, RunsEveryCall) {
  constexpr int kRanks = 3;
  constexpr size_t kCount = 10;
  const std::string book =
      MakeBook("calls", kRanks,
               {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
                CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kAlltoall,
                CollectiveKind::kGather, CollectiveKind::kScatter});
  std::vector<xcclComm_t> comms(kRanks);
  ASSERT_EQ(xcclCommInitAll(comms.data(), kRanks, nullptr), xcclSuccess);
  for (xcclComm_t comm : comms)
    ASSERT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess) << xcclGetLastError(nullptr);
  // Element i of rank r's input is 100 r + i.
  std::vector<std::vector<int32_t>> in(kRanks, std::vector<int32_t>(kRanks * kCount));
  std::vector<std::vector<std::vector<int32_t>>> out(
      8, std::vector<std::vector<int32_t>>(kRanks, std::vector<int32_t>(kRanks * kCount)));
  for (int r = 0; r < kRanks; ++r) {
    for (size_t i = 0; i < in[r].size(); ++i) in[r][i] = 100 * r + static_cast<int32_t>(i);
    const void* send = in[r].data();
    const auto receive = [&](int call) { return out[call][r].data(); };
    xcclComm_t comm = comms[r];
    EXPECT_EQ(xcclAllReduce(send, receive(0), kCount, xcclInt32, xcclSum, comm, nullptr), xcclSuccess);
    EXPECT_EQ(xcclAllGather(send, receive(1), kCount, xcclInt32, comm, nullptr), xcclSuccess);
    EXPECT_EQ(xcclReduceScatter(send, receive(2), kCount, xcclInt32, xcclMax, comm, nullptr), xcclSuccess);
    EXPECT_EQ(xcclBroadcast(send, receive(3), kCount, xcclInt32, 1, comm, nullptr), xcclSuccess);
    EXPECT_EQ(xcclReduce(send, receive(4), kCount, xcclInt32, xcclAvg, 1, comm, nullptr), xcclSuccess);
    EXPECT_EQ(xcclAlltoAll(send, receive(5), kCount, xcclInt32, comm, nullptr), xcclSuccess);
    EXPECT_EQ(xcclGather(send, receive(6), kCount, xcclInt32, 1, comm, nullptr), xcclSuccess);
    EXPECT_EQ(xcclScatter(send, receive(7), kCount, xcclInt32, 1, comm, nullptr), xcclSuccess);
  }
  for (int r = 0; r < kRanks; ++r) {
    ASSERT_EQ(xcclCommSynchronize(comms[r]), xcclSuccess) << xcclGetLastError(comms[r]);
    for (int32_t i = 0; i < static_cast<int32_t>(kCount); ++i) {
      EXPECT_EQ(out[0][r][i], 300 + 3 * i);
      EXPECT_EQ(out[2][r][i], 200 + 10 * r + i);
      EXPECT_EQ(out[3][r][i], 100 + i);
      EXPECT_EQ(out[7][r][i], 100 + 10 * r + i);
      if (r == 1) {
        EXPECT_EQ(out[4][r][i], 100 + i);
      }
      for (int s = 0; s < kRanks; ++s) {
        EXPECT_EQ(out[1][r][10 * s + i], 100 * s + i);
        EXPECT_EQ(out[5][r][10 * s + i], 100 * s + 10 * r + i);
        if (r == 1) {
          EXPECT_EQ(out[6][r][10 * s + i], 100 * s + i);
        }
      }
    }
  }
  for (xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

size_t NumEntries(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(Xccl, IdsLeaveNoThreadPortOrDescriptorBehind) {
  const auto in_use = [] { return NumEntries("/proc/self/task") + NumEntries("/proc/self/fd"); };
  const size_t before = in_use();
  for (int i = 0; i < 100; ++i) {
    xcclUniqueId id = {};
    ASSERT_EQ(xcclGetUniqueId(&id), xcclSuccess) << xcclGetLastError(nullptr);
    xcclComm_t comms[2] = {};
    for (int rank = 0; rank < 1 + i % 2; ++rank)
      ASSERT_EQ(xcclCommInitRank(&comms[rank], 3, id, rank), xcclSuccess);
    for (xcclComm_t comm : comms)
      EXPECT_EQ((i % 3 == 0 ? xcclCommAbort : xcclCommDestroy)(comm), xcclSuccess);
  }
  // Servers end soon after their ids' last communicators. A port is a descriptor.
  while (in_use() > before) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

// The configuration is refused before the id has a communicator, so the id serves a second try.
TEST(Xccl, AnIdOutlivesARefusedConfiguration) {
  xcclUniqueId id = {};
  ASSERT_EQ(xcclGetUniqueId(&id), xcclSuccess);
  xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
  config.maxCTAs = -5;
  xcclComm_t comms[2] = {};
  EXPECT_EQ(xcclCommInitRankConfig(comms, 2, id, 0, &config), xcclInvalidArgument);
  std::vector<std::thread> threads;
  const std::string book = MakeBook("second-try", 2, {CollectiveKind::kAllgather});
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      ASSERT_EQ(xcclCommInitRank(&comms[rank], 2, id, rank), xcclSuccess);
      EXPECT_EQ(xcclCommLoadPlanBook(comms[rank], book.c_str()), xcclSuccess) << xcclGetLastError(nullptr);
    });
  for (std::thread& thread : threads) thread.join();
  for (xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

TEST(Xccl, ErrorsHaveTexts) {
  xcclComm_t comm = nullptr;
  EXPECT_EQ(xcclAllReduce(nullptr, nullptr, 1, xcclFloat32, xcclSum, nullptr, nullptr), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr), "the communicator is null");
  xcclUniqueId id = {};
  EXPECT_EQ(xcclCommInitRank(&comm, 2, id, 0), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr), "the unique id was not made by this version of XCCL");
  ASSERT_EQ(xcclGetUniqueId(&id), xcclSuccess);
  EXPECT_EQ(xcclCommInitRank(&comm, 2, id, 2), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr), "rank 2; expected 0 to 1");
  ASSERT_EQ(xcclCommInitRank(&comm, 2, id, 1), xcclSuccess);
  int value = 0;
  EXPECT_EQ(xcclCommCount(comm, &value), xcclSuccess);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(xcclCommUserRank(comm, &value), xcclSuccess);
  EXPECT_EQ(value, 1);
  float number = 0;
  EXPECT_EQ(xcclAllReduce(&number, &number, 1, xcclFloat32, xcclSum, comm, nullptr), xcclInvalidUsage);
  EXPECT_STREQ(xcclGetLastError(nullptr), "allreduce: no plan book is loaded");
  EXPECT_EQ(xcclAllReduce(&number, &number, 1, static_cast<xcclDataType_t>(12), xcclSum, comm, nullptr),
            xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr), "data type 12; expected 0 to 11");
  EXPECT_EQ(xcclCommAbort(comm), xcclSuccess);
  std::vector<xcclComm_t> pair(2);
  ASSERT_EQ(xcclCommInitAll(pair.data(), 2, nullptr), xcclSuccess);
  comm = pair[0];
  EXPECT_EQ(xcclCommLoadPlanBook(comm, "/nowhere"), xcclInvalidUsage);
  EXPECT_STREQ(xcclGetLastError(nullptr), "/nowhere/index.json: cannot read: No such file or directory");
  const std::string book = MakeBook("three", 3, {CollectiveKind::kAllgather});
  EXPECT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclInvalidUsage);
  EXPECT_EQ(xcclGetLastError(nullptr), book + ": no plan for 2 ranks");
  EXPECT_EQ(xcclCommUseCuda(comm, 0), xcclInvalidUsage);
  EXPECT_STREQ(xcclGetLastError(nullptr), "a GPU is chosen before a book is loaded");
  EXPECT_EQ(xcclCommLimitCuda(comm, 8, 0), xcclInvalidUsage);
  EXPECT_STREQ(xcclGetLastError(nullptr), "limits are set before a book is loaded");
  xcclResult_t error = xcclInternalError;
  EXPECT_EQ(xcclCommGetAsyncError(comm, &error), xcclSuccess);
  EXPECT_EQ(error, xcclSuccess);
  for (xcclComm_t each : pair) EXPECT_EQ(xcclCommAbort(each), xcclSuccess);
  EXPECT_STREQ(xcclGetErrorString(xcclInvalidUsage), "invalid usage");
}

TEST(Xccl, GpusAreChosenBeforeTheFirstBook) {
  xcclComm_t comms[2] = {};
  const int wrong[2] = {0, -1};
  EXPECT_EQ(xcclCommInitAll(comms, 2, wrong), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr), "GPU -1 of rank 1; expected 0 or more");
  ASSERT_EQ(xcclCommInitAll(comms, 2, nullptr), xcclSuccess);
  EXPECT_EQ(xcclCommUseCuda(comms[0], -1), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr), "GPU -1; expected 0 or more");
  EXPECT_EQ(xcclCommLimitCuda(comms[0], -1, 0), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr), "-1 CTAs and 0 bytes; expected 0 or more of either");
  EXPECT_EQ(xcclCommUseCuda(comms[0], 0), xcclSuccess);
  EXPECT_EQ(xcclCommLimitCuda(comms[0], 8, 1 << 20), xcclSuccess);
  const std::string book = MakeBook("gpus", 2, {CollectiveKind::kAllgather});
  EXPECT_EQ(xcclCommLoadPlanBook(comms[0], book.c_str()), xcclInvalidUsage);
  const std::string error = xcclGetLastError(nullptr);
  // Without a driver, the driver is what is missing first.
  EXPECT_TRUE(error == "rank 1 has no GPU; expected xcclCommUseCuda on all ranks" ||
              error.rfind("cuda: ", 0) == 0)
      << error;
  for (xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

// A book of an allreduce on two ranks, and both of them as threads.
std::vector<xcclComm_t> Pair(const std::string& book) {
  std::vector<xcclComm_t> comms(2);
  EXPECT_EQ(xcclCommInitAll(comms.data(), 2, nullptr), xcclSuccess);
  for (xcclComm_t comm : comms)
    EXPECT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess) << xcclGetLastError(comm);
  return comms;
}

TEST(Xccl, AnAbortFromAnotherThreadWakesItsWaiters) {
  const std::string book = MakeBook("abort", 2, {CollectiveKind::kAllreduce});
  const int rounds = std::getenv("XCCL_LONG") != nullptr ? 1000 : 100;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<xcclComm_t> comms = Pair(book);
    std::vector<float> in(100), out(100);
    ASSERT_EQ(xcclAllReduce(in.data(), out.data(), 100, xcclFloat32, xcclSum, comms[0], nullptr),
              xcclSuccess);
    std::thread waiter([&] {
      // Whether the abort comes before this call or within it.
      const xcclResult_t result = xcclCommSynchronize(comms[0]);
      EXPECT_TRUE(result == xcclRemoteError || result == xcclInvalidArgument);
      EXPECT_STREQ(xcclGetLastError(comms[0]),
                   result == xcclRemoteError
                       ? "rank 0: aborted"
                       : "no such communicator: it was destroyed or aborted, or never made");
    });
    if (round % 2 == 1) std::this_thread::sleep_for(std::chrono::microseconds(10 * round));
    EXPECT_EQ(xcclCommAbort(comms[0]), xcclSuccess);
    waiter.join();
    EXPECT_EQ(xcclCommSynchronize(comms[1]), xcclRemoteError);
    EXPECT_STREQ(xcclGetLastError(comms[1]), "rank 0: aborted");
    EXPECT_EQ(xcclCommAbort(comms[1]), xcclSuccess);
  }
}

TEST(Xccl, TheHeaderHasTheVersionOfTheLibrary) {
  int version = 0;
  EXPECT_EQ(xcclGetVersion(&version), xcclSuccess);
  EXPECT_EQ(version, XCCL_VERSION_CODE);
  EXPECT_EQ(std::to_string(XCCL_MAJOR) + "." + std::to_string(XCCL_MINOR) + "." + std::to_string(XCCL_PATCH),
            kVersion);
  EXPECT_EQ(xcclGetVersion(nullptr), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr), "version is null");
}

TEST(Xccl, AHandleThatWasDestroyedIsRefused) {
  xcclComm_t comm = nullptr;
  ASSERT_EQ(xcclCommInitAll(&comm, 1, nullptr), xcclSuccess);
  EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
  EXPECT_EQ(xcclCommDestroy(comm), xcclInvalidArgument);
  EXPECT_EQ(xcclCommSynchronize(comm), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(comm), "no such communicator: it was destroyed or aborted, or never made");
}

TEST(Xccl, ErrorsOfTheCallerAreInvalidArguments) {
  const std::vector<xcclComm_t> comms = Pair(MakeBook("codes", 2, {CollectiveKind::kAllreduce}));
  float x = 0;
  struct Case {
    xcclResult_t result;
    std::string text;
  };
  const auto said = [&](xcclResult_t result) { return Case{result, xcclGetLastError(comms[0])}; };
  const auto sum = [&](const float* send, float* receive, size_t count) {
    return xcclAllReduce(send, receive, count, xcclFloat32, xcclSum, comms[0], nullptr);
  };
  const std::vector<std::pair<Case, std::string>> cases = {
      {said(sum(nullptr, &x, 1)), "allreduce: the send buffer is null"},
      {said(sum(&x, nullptr, 1)), "allreduce: the receive buffer is null"},
      {said(sum(&x, &x, SIZE_MAX)), "count 18446744073709551615 is too large"},
      {said(sum(&x, &x, size_t{1} << 62)),
       "allreduce: count 4611686018427387904; expected 0 to 144115188075855872"},
      {said(xcclBroadcast(&x, &x, 1, xcclFloat32, 2, comms[0], nullptr)),
       "broadcast: root 2; expected 0 to 1"}};
  for (const auto& [seen, text] : cases) {
    EXPECT_EQ(seen.result, xcclInvalidArgument) << text;
    EXPECT_EQ(seen.text, text);
  }
  for (xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

TEST(Xccl, ARefusedCallHasItsTextOnItsCommunicator) {
  const std::vector<xcclComm_t> comms = Pair(MakeBook("texts", 2, {CollectiveKind::kAllreduce}));
  float x = 0;
  EXPECT_EQ(xcclBroadcast(&x, &x, 1, xcclFloat32, 2, comms[0], nullptr), xcclInvalidArgument);
  EXPECT_EQ(xcclBroadcast(&x, &x, 1, xcclFloat32, 3, comms[1], nullptr), xcclInvalidArgument);
  const char* const first = xcclGetLastError(comms[0]);
  const char* const second = xcclGetLastError(comms[1]);
  EXPECT_STREQ(first, "broadcast: root 2; expected 0 to 1");
  EXPECT_STREQ(second, "broadcast: root 3; expected 0 to 1");
  EXPECT_STREQ(xcclGetLastError(nullptr), second);
  // Another thread has no failed call.
  std::thread([&] { EXPECT_STREQ(xcclGetLastError(comms[0]), ""); }).join();
  for (xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

TEST(Xccl, TheTimeLimitMayBeNoneAndMayChange) {
  const std::vector<xcclComm_t> comms = Pair(MakeBook("limit", 2, {CollectiveKind::kAllreduce}));
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const double seconds : {0.0, kInfinite, 1e300, 1e-300, 0.05})
    EXPECT_EQ(xcclCommSetTimeLimit(comms[0], seconds), xcclSuccess) << seconds;
  for (const double seconds : {-1.0, std::nan("")})
    EXPECT_EQ(xcclCommSetTimeLimit(comms[0], seconds), xcclInvalidArgument) << seconds;
  EXPECT_STREQ(xcclGetLastError(comms[0]), "time limit nan s; expected 0 or more");
  float x = 0;
  EXPECT_EQ(xcclAllReduce(&x, &x, 1, xcclFloat32, xcclSum, comms[0], nullptr), xcclSuccess);
  EXPECT_EQ(xcclCommSynchronize(comms[0]), xcclRemoteError);
  for (xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

// The thread that would end these calls is not in the child.
TEST(Xccl, AForkedProcessIsToldInsteadOfHanging) {
  const std::vector<xcclComm_t> comms = Pair(MakeBook("fork", 2, {CollectiveKind::kAllreduce}));
  float x = 0;
  EXPECT_EQ(xcclAllReduce(&x, &x, 1, xcclFloat32, xcclSum, comms[0], nullptr), xcclSuccess);
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = "rank 0: the communicator is of process " + std::to_string(getppid()) +
                             ", and process " + std::to_string(getpid()) + " is a fork";
    const bool told = xcclCommSynchronize(comms[0]) == xcclInvalidUsage &&
                      xcclGetLastError(comms[0]) == text && xcclCommDestroy(comms[0]) == xcclInvalidUsage &&
                      xcclCommAbort(comms[1]) == xcclInvalidUsage;
    xcclComm_t own = nullptr;
    const bool starts = xcclCommInitAll(&own, 1, nullptr) == xcclSuccess;
    std::quick_exit(told && starts ? 0 : 1);
  }
  int ending = 0;
  ASSERT_EQ(waitpid(child, &ending, 0), child);
  EXPECT_TRUE(WIFEXITED(ending) && WEXITSTATUS(ending) == 0);
  EXPECT_EQ(xcclCommAbort(comms[0]), xcclSuccess);
  EXPECT_EQ(xcclCommDestroy(comms[1]), xcclSuccess);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Whatever the library asks for next, at some limit it is what cannot be had.
TEST(Xccl, NoExceptionCrossesWhereThereIsNoMemory) {
  const std::string book = MakeBook("memory", 2, {CollectiveKind::kAllreduce});
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  for (rlim_t more = 0; more < 24 << 20; more += 512 << 10) {
    const pid_t child = fork();
    if (child == 0) {
      const rlim_t bytes = pages * static_cast<rlim_t>(getpagesize()) + more;
      const rlimit limit = {bytes, bytes};
      if (setrlimit(RLIMIT_AS, &limit) != 0) std::quick_exit(2);
      xcclComm_t comms[2] = {};
      xcclResult_t result = xcclCommInitAll(comms, 2, nullptr);
      for (int r = 0; r < 2 && result == xcclSuccess; ++r)
        result = xcclCommLoadPlanBook(comms[r], book.c_str());
      static float x[2] = {};
      for (int r = 0; r < 2 && result == xcclSuccess; ++r)
        result = xcclAllReduce(&x[r], &x[r], 1, xcclFloat32, xcclSum, comms[r], nullptr);
      for (int r = 0; r < 2 && result == xcclSuccess; ++r) result = xcclCommSynchronize(comms[r]);
      std::quick_exit(result == xcclSuccess || result == xcclSystemError ? 0 : 3);
    }
    int ending = 0;
    ASSERT_EQ(waitpid(child, &ending, 0), child);
    EXPECT_TRUE(WIFEXITED(ending) && WEXITSTATUS(ending) == 0) << more << " bytes more: " << ending;
  }
}
#endif

TEST(Xccl, AGpuThatIsMissingHasNoHintForTheCommandLine) {
  const std::string book = MakeBook("no_gpu", 1, {CollectiveKind::kAllgather});
  xcclComm_t comm = nullptr;
  const int device = 1000;
  ASSERT_EQ(xcclCommInitAll(&comm, 1, &device), xcclSuccess);
  EXPECT_NE(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess);
  EXPECT_EQ(std::string(xcclGetLastError(comm)).find("--"), std::string::npos) << xcclGetLastError(comm);
  EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

}  // namespace
}  // namespace xccl
