#include "runtime/bootstrap/bootstrap.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "runtime/bootstrap/test_group.h"
#include "runtime/bootstrap/unique_id.h"

namespace xccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Patient;
using testing::PlaceOf;
using testing::RunGroup;

// Blobs of odd sizes, some of them empty, that name their rank.
std::string BlobOf(int32_t rank) {
  return rank % 3 == 1 ? ""
                       : std::string(static_cast<size_t>(rank * 7 + 1), static_cast<char>('a' + rank % 26));
}

TEST(Bootstrap, GathersFromAllToAll) {
  for (const int32_t ranks : {1, 2, 3, 7, 8, 64}) {
    std::mutex mutex;
    std::set<std::string> jobs;
    RunGroup(ranks, Patient(), [&](Bootstrap& group) {
      EXPECT_EQ(group.ranks(), ranks);
      EXPECT_EQ(group.hosts(), std::vector<int32_t>(static_cast<size_t>(ranks), 0));
      EXPECT_EQ(group.host_names().size(), 1u);
      EXPECT_EQ(group.local_rank(), group.rank().value);
      EXPECT_EQ(group.local_ranks(), ranks);
      EXPECT_FALSE(group.address().empty());
      for (int round = 0; round < 3; ++round) {
        const auto all = group.AllGather(BlobOf(group.rank().value + round), seconds(20));
        ASSERT_TRUE(all.ok()) << all.status().message();
        ASSERT_EQ(all->size(), static_cast<size_t>(ranks));
        for (int32_t r = 0; r < ranks; ++r) EXPECT_EQ((*all)[static_cast<size_t>(r)], BlobOf(r + round));
        EXPECT_EQ(group.Barrier(seconds(20)), OkStatus());
      }
      EXPECT_FALSE(group.Failure());
      const std::lock_guard lock(mutex);
      jobs.insert(group.job());
    });
    ASSERT_EQ(jobs.size(), 1u) << ranks;
    EXPECT_EQ(jobs.begin()->size(), 32u);
  }
}

TEST(Bootstrap, MeetsOverIpV6) {
  RunGroup(
      5, Patient(),
      [](Bootstrap& group) {
        const auto all = group.AllGather(std::to_string(group.rank().value), seconds(20));
        ASSERT_TRUE(all.ok()) << all.status().message();
        EXPECT_EQ(all->back(), "4");
      },
      true);
}

// As an abort of the maker's communicator does, while another rank waits.
TEST(Bootstrap, TheLastUserOfAUniqueIdEndsItsServer) {
  const StatusOr<UniqueId> id = MakeUniqueId(Patient());
  ASSERT_TRUE(id.ok()) << id.status().message();
  std::shared_ptr<void> first = UseUniqueId(*id), second = UseUniqueId(*id);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(UseUniqueId(UniqueId{}), nullptr);
  const StatusOr<Placement> placement = FromUniqueId(*id, Rank(1), 2);
  ASSERT_TRUE(placement.ok()) << placement.status().message();
  Status waiting;
  std::thread other([&] { waiting = Bootstrap::Join(*placement, Patient()).status(); });
  first.reset();
  EXPECT_NE(UseUniqueId(*id), nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the other may have come by now, or not
  second.reset();
  other.join();
  EXPECT_EQ(waiting.code(), StatusCode::kLimit) << waiting.message();
  while (UseUniqueId(*id) != nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST(Bootstrap, NumbersHostsByTheirLowestRank) {
  const std::string endpoint = testing::FreeEndpoint();
  const std::vector<std::string> ids = {"b", "a", "b", "c", "a"};
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < 5; ++r)
    threads.emplace_back([&, r] {
      Placement placement = PlaceOf(r, 5, endpoint);
      placement.host_id = ids[static_cast<size_t>(r)];
      const auto group = Bootstrap::Join(placement, Patient());
      ASSERT_TRUE(group.ok()) << group.status().message();
      EXPECT_EQ((*group)->hosts(), (std::vector<int32_t>{0, 1, 0, 2, 1}));
      EXPECT_EQ((*group)->host_names().size(), 3u);
      EXPECT_EQ((*group)->local_rank(), r == 2 || r == 4 ? 1 : 0);
      EXPECT_EQ((*group)->local_ranks(), r == 3 ? 1 : 2);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Bootstrap, GathersLargeBlobs) {
  RunGroup(4, Patient(), [](Bootstrap& group) {
    const std::string mine(size_t{3} << 20, static_cast<char>('0' + group.rank().value));
    const auto all = group.AllGather(mine, seconds(20));
    ASSERT_TRUE(all.ok()) << all.status().message();
    for (size_t r = 0; r < 4; ++r)
      EXPECT_EQ((*all)[r], std::string(size_t{3} << 20, static_cast<char>('0' + r)));
  });
}

TEST(Bootstrap, RefusesBlobsThatAreTooLarge) {
  RunGroup(3, Patient(), [](Bootstrap& group) {
    ASSERT_EQ(group.Barrier(seconds(20)), OkStatus());  // all have joined
    const bool large = group.rank().value == 1;
    const auto all = group.AllGather(std::string(large ? (size_t{16} << 20) + 1 : 1, 'x'), seconds(20));
    EXPECT_EQ(all.status().message(), "AllGather: rank 1 gives 16777217 bytes; expected at most 16777216");
  });
}

TEST(Bootstrap, CallsOfDifferentKindsAreNoticed) {
  RunGroup(2, Patient(), [](Bootstrap& group) {
    const Status status =
        group.rank().value == 0 ? group.Barrier(seconds(20)) : group.AllGather("x", seconds(20)).status();
    const std::string& text = status.message();
    EXPECT_TRUE(text == "rank 1: sent blobs to a barrier; expected Barrier on all ranks" ||
                text == "rank 0: sent blobs of another form; expected AllGather on all ranks")
        << text;
  });
}

TEST(Bootstrap, MeetsByUniqueId) {
  const StatusOr<UniqueId> id = MakeUniqueId(Patient());
  ASSERT_TRUE(id.ok()) << id.status().message();
  std::vector<Placement> placements;
  for (int32_t r = 0; r < 4; ++r) {
    const StatusOr<Placement> placement = FromUniqueId(*id, Rank(r), 4);
    ASSERT_TRUE(placement.ok()) << placement.status().message();
    placements.push_back(*placement);
  }
  for (const Status& status : testing::JoinAll(placements, Patient())) EXPECT_EQ(status, OkStatus());
  EXPECT_EQ(FromUniqueId(UniqueId{}, Rank(0), 1).status().message(),
            "the unique id was not made by this version of XCCL");
  EXPECT_EQ(FromUniqueId(*id, Rank(4), 4).status().message(),
            "rank 4 of 4: expected a rank from 0 to size - 1");
}

// A fast rank that meets again at the same address must not reach the rendezvous of the meeting before.
TEST(Bootstrap, MeetsAgainAndAgainAtOneAddress) {
  const std::string endpoint = testing::FreeEndpoint();
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < 4; ++r)
    threads.emplace_back([&, r] {
      for (int round = 0; round < 20; ++round) {
        const auto group = Bootstrap::Join(PlaceOf(r, 4, endpoint), Patient());
        ASSERT_TRUE(group.ok()) << "round " << round << ": " << group.status().message();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Bootstrap, ProgressSpreadsAndStandsStill) {
  BootstrapOptions options = Patient();
  options.silence_limit = seconds(2);  // heartbeats each 0.4 s
  RunGroup(8, options, [](Bootstrap& group) {
    ASSERT_EQ(group.Barrier(seconds(20)), OkStatus());
    EXPECT_EQ(group.Progress(), 0u);
    uint64_t seen = 0;
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(group.Barrier(seconds(20)), OkStatus());
      if (group.rank().value == 5) group.NoteProgress();
      const auto until = std::chrono::steady_clock::now() + seconds(20);
      while (group.Progress() <= seen && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(milliseconds(5));
      EXPECT_EQ(group.Progress(), seen + 1);
      seen = group.Progress();
      ASSERT_EQ(group.Barrier(seconds(20)), OkStatus());
      std::this_thread::sleep_for(milliseconds(500));
      EXPECT_EQ(group.Progress(), seen);
    }
  });
}

TEST(Bootstrap, LeavingInGoodOrderIsNoFailure) {
  std::atomic<int> left{0};
  RunGroup(6, Patient(), [&](Bootstrap& group) {
    group.NoteCall(7);
    if (group.rank().value == 2) return;
    const auto until = std::chrono::steady_clock::now() + seconds(20);
    while (group.Left().empty() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(milliseconds(5));
    ASSERT_EQ(group.Left().size(), 1u);
    EXPECT_EQ(group.Left()[0].rank, Rank(2));
    EXPECT_EQ(group.Left()[0].call, 7u);
    EXPECT_FALSE(group.Failure());
    ++left;
    while (left < 5) std::this_thread::sleep_for(milliseconds(5));
  });
}

// Ranks 0 and 5 of eleven are no partners, and rank 5 is not the first that leaves.
TEST(Bootstrap, AllHearOfEveryRankThatHasLeft) {
  std::atomic<int> heard{0};
  RunGroup(11, Patient(), [&](Bootstrap& group) {
    const int32_t rank = group.rank().value;
    if (rank == 3) return;
    const auto until = std::chrono::steady_clock::now() + seconds(20);
    const auto wait_for = [&](int32_t other) {
      while (!group.HasLeft(Rank(other)) && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(milliseconds(5));
      EXPECT_TRUE(group.HasLeft(Rank(other))) << rank << " of " << other;
    };
    wait_for(3);
    if (rank == 5) return;
    wait_for(5);
    ++heard;
    while (heard < 9) std::this_thread::sleep_for(milliseconds(5));
  });
}

TEST(Bootstrap, ARankThatHasLeftIsNotAwaited) {
  RunGroup(4, Patient(), [](Bootstrap& group) {
    if (group.rank().value == 1) return;
    const Status status = group.Barrier(seconds(20));
    EXPECT_EQ(status.code(), StatusCode::kPeerEnded);
    EXPECT_EQ(status.message().rfind("Barrier: rank 1 has left the group (host ", 0), 0u) << status.message();
  });
}

// A host's name goes into messages.
TEST(Bootstrap, ANameOfAHostIsCleaned) {
  const std::string endpoint = testing::FreeEndpoint();
  const auto place = [&](int32_t rank) {
    Placement placement = testing::PlaceOf(rank, 2, endpoint);
    placement.host_id = rank == 0 ? "first" : "second";
    return placement;
  };
  const std::string name = "evil\x1b[31m\n";
  std::array<int, 2> renamed = {-1, -1};
  ASSERT_EQ(pipe(renamed.data()), 0);
  testing::Child liar([&] {
    const bool may = unshare(CLONE_NEWUSER | CLONE_NEWUTS) == 0 && sethostname(name.data(), name.size()) == 0;
    if (write(renamed[1], may ? "y" : "n", 1) != 1 || !may) return 1;
    const auto group = Bootstrap::Join(place(1), testing::Patient());
    return group.ok() && (*group)->Barrier(std::chrono::seconds(20)).ok() ? 0 : 1;
  });
  char may = 0;
  ASSERT_EQ(read(renamed[0], &may, 1), 1);
  for (const int file : renamed) close(file);
  if (may != 'y') GTEST_SKIP() << "this host gives no name spaces";
  const auto group = Bootstrap::Join(place(0), testing::Patient());
  ASSERT_TRUE(group.ok()) << group.status().message();
  EXPECT_EQ((*group)->host_names()[1], "evil?[31m?");
  EXPECT_EQ((*group)->Barrier(std::chrono::seconds(20)), OkStatus());
  EXPECT_EQ(liar.Wait(), 0);
}

// Hosts with both families and hosts with one used to take addresses that the others do not reach.
TEST(Bootstrap, AnIdForRanksThatHaveMetKeepsTheirFamily) {
  const auto rendezvous = [](const char* met_at) {
    const StatusOr<UniqueId> id = MakeUniqueId(Patient(), met_at);
    EXPECT_TRUE(id.ok()) << id.status().message();
    const std::shared_ptr<void> use = UseUniqueId(*id);
    return FromUniqueId(*id, Rank(0), 1)->rendezvous;
  };
  EXPECT_EQ(rendezvous("127.0.0.1").find('['), std::string::npos);
  const std::string all = rendezvous("");
  if (all.find('[') == std::string::npos) GTEST_SKIP() << "this host has no address of IPv6";
  EXPECT_EQ(rendezvous("::1").find('.'), std::string::npos);
}

}  // namespace
}  // namespace xccl
