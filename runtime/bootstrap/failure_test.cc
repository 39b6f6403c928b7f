// Failures that idle ranks learn of: each rank is a process, made before this one has threads.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/test_group.h"

namespace xccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Child;
using testing::PlaceOf;
using testing::RunGroup;

BootstrapOptions Options(milliseconds silence) {
  BootstrapOptions options;
  options.time_limit = seconds(20);
  options.silence_limit = silence;
  return options;
}

std::optional<Status> AwaitFailure(const Bootstrap& group, std::chrono::nanoseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!group.Failure() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(milliseconds(2));
  return group.Failure();
}

// A child joins as rank 2 of 6 and waits; this process joins as the others, which are idle.
struct Victim {
  std::string endpoint = testing::FreeEndpoint();
  milliseconds silence;
  Child child;
  std::vector<std::unique_ptr<Bootstrap>> others;

  explicit Victim(milliseconds silence_limit)
      : silence(silence_limit), child([this] {
          const auto group = Bootstrap::Join(PlaceOf(2, 6, endpoint), Options(silence));
          if (!group.ok()) return 1;
          pause();
          return 0;
        }) {
    others.resize(6);
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < 6; ++r)
      if (r != 2)
        threads.emplace_back([this, r] {
          auto group = Bootstrap::Join(PlaceOf(r, 6, endpoint), Options(silence));
          EXPECT_TRUE(group.ok()) << group.status().message();
          if (group.ok()) others[static_cast<size_t>(r)] = *std::move(group);
        });
    for (std::thread& thread : threads) thread.join();
  }
  std::string Where() const {
    return " (host " + bootstrap::HostName() + ", pid " + std::to_string(child.pid()) + ")";
  }
};

TEST(Failure, IdleRanksLearnOfAKilledProcess) {
  Victim victim(seconds(10));
  std::this_thread::sleep_for(milliseconds(20));
  victim.child.Signal(SIGKILL);
  for (const auto& group : victim.others) {
    if (group == nullptr) continue;
    EXPECT_EQ(AwaitFailure(*group, seconds(5)), PeerEnded("rank 2: its process has ended" + victim.Where()));
    // Calls end at once.
    EXPECT_EQ(group->Barrier(BootstrapOptions::kForever), *group->Failure());
  }
}

TEST(Failure, AWaitEndsWhenAProcessIsKilled) {
  Victim victim(seconds(10));
  std::vector<std::thread> threads;
  for (const auto& group : victim.others)
    if (group != nullptr)
      threads.emplace_back([&group, &victim] {
        EXPECT_EQ(group->AllGather("x", BootstrapOptions::kForever).status(),
                  PeerEnded("rank 2: its process has ended" + victim.Where()));
      });
  std::this_thread::sleep_for(milliseconds(100));
  victim.child.Signal(SIGKILL);
  for (std::thread& thread : threads) thread.join();
}

TEST(Failure, AStoppedProcessIsFoundByItsSilence) {
  Victim victim(milliseconds(1500));
  victim.child.Signal(SIGSTOP);
  for (const auto& group : victim.others) {
    if (group == nullptr) continue;
    EXPECT_EQ(AwaitFailure(*group, seconds(20)),
              PeerEnded("rank 2: no sign of life for 1.5 s" + victim.Where()));
  }
  victim.child.Signal(SIGCONT);
}

TEST(Failure, IsToldToAll) {
  RunGroup(9, Options(seconds(10)), [](Bootstrap& group) {
    std::atomic<int> calls{0};
    group.OnFailure([&](const Status& status) {
      EXPECT_EQ(status.message(), "rank 4: its plan is another");
      ++calls;
    });
    // All have joined when rank 4 passes; its failure may end the barrier of others.
    (void)group.Barrier(seconds(20));
    if (group.rank().value == 4) {
      group.Fail(InvalidInput("rank 4: its plan is another"));
      group.Fail(InvalidInput("a later reason"));
    }
    EXPECT_EQ(AwaitFailure(group, seconds(20)), InvalidInput("rank 4: its plan is another"));
    const auto until = std::chrono::steady_clock::now() + seconds(20);
    while (calls == 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(milliseconds(2));
    group.OnFailure([&](const Status&) { ++calls; });
    EXPECT_EQ(calls, 2);
  });
}

// Rank 5 does not take part; all name it, also those that wait for a rank which waits for it.
TEST(Failure, ALimitNamesTheRankThatIsMissing) {
  RunGroup(8, Options(seconds(10)), [](Bootstrap& group) {
    ASSERT_EQ(group.Barrier(seconds(20)), OkStatus());
    if (group.rank().value != 5) {
      EXPECT_EQ(group.Barrier(milliseconds(1500)).message(),
                "Barrier: rank 5 did not take part within 1.5 s (host " + bootstrap::HostName() + ")");
    } else {
      EXPECT_EQ(AwaitFailure(group, seconds(20))->code(), StatusCode::kLimit);
    }
  });
}

}  // namespace
}  // namespace xccl
