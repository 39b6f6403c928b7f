// Failures that idle ranks learn of: each rank is a process, made before this one has threads.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/strings.h"
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

TEST(Failure, NotesReachTheLivingRanksOfAFailedGroup) {
  Victim victim(seconds(10));
  const auto all_hear = [&](const std::string& key, const std::string& text) {
    for (const auto& group : victim.others) {
      if (group == nullptr) continue;
      EXPECT_EQ(group->AwaitNote(key, seconds(20)), text);
    }
  };
  victim.others[0]->Post("before", "hello");
  all_hear("before", "hello");
  victim.child.Signal(SIGKILL);
  for (const auto& group : victim.others) {
    if (group == nullptr) continue;
    EXPECT_TRUE(AwaitFailure(*group, seconds(5)));
  }
  EXPECT_EQ(victim.others[4]->AwaitNote("after", milliseconds(1)), std::nullopt);
  victim.others[5]->Post("after", "who is there?");
  all_hear("after", "who is there?");
}

// Ranks 0 and 3 of six are no partners, and all between them leave.
TEST(Failure, ALinkBringsNotesWhereAllBetweenHaveLeft) {
  RunGroup(6, Options(seconds(60)), [](Bootstrap& group) {
    EXPECT_EQ(group.Barrier(seconds(20)), OkStatus());
    const int32_t rank = group.rank().value;
    if (rank % 3 != 0) return;
    const auto until = std::chrono::steady_clock::now() + seconds(20);
    for (const int32_t other : {1, 2, 4, 5})
      while (group.IsLinked(Rank(other)) && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(milliseconds(2));
    EXPECT_EQ(group.Failure(), std::nullopt);
    if (rank == 0) {
      group.Post("early", "from rank 0");
      EXPECT_EQ(group.AwaitNote("late", seconds(20)), "from rank 3");
      EXPECT_EQ(group.Link(Rank(3)), OkStatus());  // it is
      group.Post("later", "from rank 0");
      return;
    }
    EXPECT_FALSE(group.IsLinked(Rank(0)));
    (void)group.Link(Rank(1));  // its door may be there still, but not for long
    while (group.IsLinked(Rank(1)) && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(milliseconds(2));
    EXPECT_FALSE(group.IsLinked(Rank(1)));
    EXPECT_EQ(group.Link(Rank(0)), OkStatus());
    EXPECT_EQ(group.AwaitNote("early", seconds(20)), "from rank 0");
    group.Post("late", "from rank 3");
    EXPECT_EQ(group.AwaitNote("later", seconds(20)), "from rank 0");
    EXPECT_EQ(group.Failure(), std::nullopt);
  });
}

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

// A fork that does not execute a program, as Python's multiprocessing makes them, has copies of all sockets.
TEST(Failure, AKilledProcessIsFoundThoughAForkOfItLives) {
  const std::string endpoint = testing::FreeEndpoint();
  const int told = memfd_create("told", 0);
  const pid_t test = getpid();
  std::array<int, 2> forked = {-1, -1};
  ASSERT_EQ(pipe(forked.data()), 0);
  Child victim([&] {
    const auto group = Bootstrap::Join(PlaceOf(2, 3, endpoint), Options(seconds(60)));
    if (!group.ok()) return 1;
    const pid_t child = fork();
    if (child == 0) {
      while (kill(test, 0) == 0 && lseek(told, 0, SEEK_END) == 0) usleep(1000);
      _exit(0);
    }
    if (write(forked[1], "f", 1) != 1) return 1;
    pause();
    return 0;
  });
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      const auto group = Bootstrap::Join(PlaceOf(r, 3, endpoint), Options(seconds(60)));
      EXPECT_TRUE(group.ok()) << group.status().message();
      if (!group.ok()) return;
      char byte = 0;
      if (r == 0) {
        EXPECT_EQ(read(forked[0], &byte, 1), 1);
        victim.Signal(SIGKILL);
      }
      EXPECT_EQ(AwaitFailure(**group, seconds(20)),
                PeerEnded(fmt::format("rank 2: its process has ended (host {}, pid {})",
                                      bootstrap::HostName(), victim.pid())));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(write(told, "x", 1), 1);  // the fork ends
  for (const int file : {told, forked[0], forked[1]}) close(file);
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

// Eight processes meet and call without end; one is killed at a random moment, while they meet or later. All
// others end with a reason that names it.
TEST(Failure, ARandomKillIsNamedByAll) {
  Random random(7);
  for (int round = 0; round < 20; ++round) {
    const std::string endpoint = testing::FreeEndpoint();
    const int told = memfd_create("told", 0);
    const auto victim = static_cast<int32_t>(random.Below(8));
    std::vector<std::unique_ptr<Child>> children;
    for (int32_t r = 0; r < 8; ++r)
      children.push_back(std::make_unique<Child>([&, r] {
        BootstrapOptions options = Options(seconds(10));
        options.time_limit = seconds(4);
        auto group = Bootstrap::Join(PlaceOf(r, 8, endpoint), options);
        Status status = group.status();
        while (status.ok()) status = (*group)->AllGather(std::string(1000, 'x'), seconds(10)).status();
        const std::string line = status.message() + "\n";
        return write(told, line.data(), line.size()) > 0 ? 42 : 1;
      }));
    usleep(static_cast<useconds_t>(random.Below(60'000)));
    children[static_cast<size_t>(victim)]->Signal(SIGKILL);
    // Who served the rendezvous cannot tell the others when it dies: they find that nobody serves it.
    for (int32_t r = 0; r < 8; ++r)
      EXPECT_EQ(children[static_cast<size_t>(r)]->Wait(), r == victim ? 137 : 42) << "rank " << r;
    std::string text(static_cast<size_t>(lseek(told, 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(told, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    close(told);
    for (const std::string& line : Split(text, '\n')) {
      const bool named =
          line.find(fmt::format("rank {}", victim)) != std::string::npos ||
          line.find(fmt::format("pid {}", children[static_cast<size_t>(victim)]->pid())) != std::string::npos;
      EXPECT_TRUE(line.empty() || named)
          << "round " << round << ", rank " << victim << " was killed: " << line;
    }
  }
}

}  // namespace
}  // namespace xccl
