#include "runtime/cpu/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <string>
#include <thread>

#include "base/testing/no_threads.h"

namespace xccl {
namespace {

using std::chrono::milliseconds;

SharedRegion Region(Sharing sharing, int32_t ranks) {
  Wiring wiring;
  wiring.ranks = ranks;
  StatusOr<SharedRegion> region = SharedRegion::Create(wiring, sharing);
  XCCL_CHECK(region.ok());
  return std::move(*region);
}

const Rank kThree[] = {Rank(0), Rank(1), Rank(2)};

TEST(RunRanks, AKilledProcessEndsTheOthersWithItsName) {
  const SharedRegion region = Region(Sharing::kChildren, 3);
  const Status status = RunRanks(region, kThree, milliseconds(5000), [](Endpoint& endpoint) {
    if (endpoint.rank() == Rank(2)) raise(SIGKILL);
    return endpoint.Barrier(std::chrono::seconds(60));
  });
  EXPECT_EQ(status.code(), StatusCode::kLimit);
  EXPECT_THAT(status.message(),
              testing::MatchesRegex("rank 2: its process [0-9]+ was ended by signal 9 .Killed."));
}

TEST(RunRanks, AProcessThatExitsIsAFailure) {
  const SharedRegion region = Region(Sharing::kChildren, 3);
  const Status status = RunRanks(region, kThree, milliseconds(5000), [](Endpoint& endpoint) {
    if (endpoint.rank() == Rank(1)) _exit(7);
    return endpoint.Barrier(std::chrono::seconds(60));
  });
  EXPECT_THAT(status.message(), testing::MatchesRegex("rank 1: its process [0-9]+ exited with status 7"));
}

TEST(RunRanks, AChildThatDoesNotStopIsKilled) {
  const SharedRegion region = Region(Sharing::kChildren, 3);
  const Status status = RunRanks(region, kThree, milliseconds(100), [](Endpoint& endpoint) -> Status {
    if (endpoint.rank() == Rank(0)) return InvalidInput("rank 0 gives up");
    std::this_thread::sleep_for(std::chrono::minutes(5));
    return OkStatus();
  });
  EXPECT_EQ(status, InvalidInput("rank 0 gives up"));
}

TEST(RunRanks, AThreadThatCannotBeHadDoesNotEndTheProgram) {
  const SharedRegion region = Region(Sharing::kThreads, 3);
  const NoThreads none;
  EXPECT_EQ(RunRanks(region, kThree, milliseconds(5000), [](Endpoint&) { return OkStatus(); }),
            SystemError("rank 0: cannot start a thread: Resource temporarily unavailable"));
}

TEST(RunRanks, AChildThatIsStoppedIsNamedAndEnded) {
  const SharedRegion region = Region(Sharing::kChildren, 3);
  const Status status = RunRanks(region, kThree, milliseconds(1000), [](Endpoint& endpoint) {
    if (endpoint.rank() == Rank(2)) raise(SIGSTOP);
    return endpoint.Barrier(milliseconds(1000));
  });
  EXPECT_EQ(status.code(), StatusCode::kLimit);
  const std::string& text = status.message();
  EXPECT_EQ(text.find("rank 2: its process "), 0) << text;
  EXPECT_NE(text.find(" is stopped; rank "), std::string::npos) << text;
  EXPECT_NE(text.find("expected 3 ranks at a barrier, saw 2; nothing moved for 1000 ms"), std::string::npos)
      << text;
}

TEST(RunRanks, AnExceptionOfARankDoesNotEndTheProgram) {
  for (Sharing sharing : {Sharing::kThreads, Sharing::kChildren}) {
    const SharedRegion region = Region(sharing, 3);
    EXPECT_EQ(RunRanks(region, kThree, milliseconds(5000),
                       [](Endpoint& endpoint) -> Status {
                         if (endpoint.rank() == Rank(1)) throw std::bad_alloc();
                         return endpoint.Barrier(std::chrono::seconds(60));
                       }),
              SystemError("rank 1: out of memory"));
  }
}

TEST(RunRanks, TheFirstFailureIsEverybodys) {
  for (Sharing sharing : {Sharing::kThreads, Sharing::kChildren}) {
    const SharedRegion region = Region(sharing, 3);
    EXPECT_EQ(RunRanks(region, kThree, milliseconds(5000),
                       [](Endpoint& endpoint) {
                         if (endpoint.rank() == Rank(1)) return InvalidInput("rank 1 gives up");
                         return endpoint.Barrier(std::chrono::seconds(60));
                       }),
              InvalidInput("rank 1 gives up"));
  }
}

TEST(RunRanks, ABarrierThatNotAllReachSaysSo) {
  const SharedRegion region = Region(Sharing::kThreads, 3);
  const Status status = RunRanks(region, kThree, milliseconds(5000), [](Endpoint& endpoint) {
    return endpoint.rank() == Rank(0) ? OkStatus() : endpoint.Barrier(milliseconds(100));
  });
  EXPECT_EQ(status.code(), StatusCode::kLimit);
  EXPECT_NE(status.message().find("expected 3 ranks at a barrier, saw 2; nothing moved for 100 ms"),
            std::string::npos)
      << status.message();
}

TEST(RunRanks, BarriersKeepRanksInStep) {
  const SharedRegion region = Region(Sharing::kThreads, 3);
  std::atomic<int> arrived = 0;
  EXPECT_EQ(RunRanks(region, kThree, milliseconds(5000),
                     [&](Endpoint& endpoint) -> Status {
                       for (int i = 1; i <= 200; ++i) {
                         ++arrived;
                         XCCL_RETURN_IF_ERROR(endpoint.Barrier(milliseconds(5000)));
                         if (arrived < 3 * i) return BugError("a rank passed before all had come");
                         XCCL_RETURN_IF_ERROR(endpoint.Barrier(milliseconds(5000)));
                       }
                       return OkStatus();
                     }),
            OkStatus());
}

}  // namespace
}  // namespace xccl
