#include "runtime/communicator.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/cpu/backends.h"
#include "runtime/launched/launched_group.h"
#include "runtime/rdma/ofi/transport.h"
#include "runtime/testing/ring_programs.h"

namespace xccl {
namespace {

std::vector<ServedPlan> Rings(int32_t ranks) {
  PlanBookEntry allreduce, allgather;
  allreduce.file = "allreduce";
  allreduce.ranks = allgather.ranks = ranks;
  allgather.file = "allgather";
  allgather.collective = CollectiveKind::kAllgather;
  return {{allreduce, AllMembers(CollectiveKind::kAllreduce, ranks, ranks), RingAllreduce(ranks)},
          {allgather, AllMembers(CollectiveKind::kAllgather, ranks), RingAllgather(ranks)}};
}

using Communicators = std::vector<std::unique_ptr<Communicator>>;

Communicators Threads(int32_t ranks, const CommunicatorOptions& options = {}) {
  Communicators all;
  std::vector<Backend> backends = ThreadBackends(ranks);
  for (int32_t r = 0; r < ranks; ++r) {
    all.push_back(
        std::make_unique<Communicator>(Rank(r), ranks, std::move(backends[static_cast<size_t>(r)]), options));
    EXPECT_EQ(all.back()->LoadPlans("rings", Rings(ranks)), OkStatus());
  }
  return all;
}

Call Make(CollectiveKind kind, const std::vector<float>& send, std::vector<float>& receive, int64_t count) {
  Call call;
  call.collective = kind;
  call.send = reinterpret_cast<const std::byte*>(send.data());
  call.receive = reinterpret_cast<std::byte*>(receive.data());
  call.count = count;
  return call;
}

TEST(Communicator, OneThreadDrivesSeveralRanks) {
  constexpr int32_t kRanks = 3;
  constexpr int64_t kCount = 1001;  // no multiple of 16 bytes
  const Communicators all = Threads(kRanks);
  std::vector<std::vector<float>> in(kRanks, std::vector<float>(kCount)), sum = in;
  std::vector<std::vector<float>> gathered(kRanks, std::vector<float>(kRanks * kCount));
  for (int32_t r = 0; r < kRanks; ++r) std::iota(in[r].begin(), in[r].end(), static_cast<float>(r * 10000));
  for (int32_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(all[r]->Enqueue(Make(CollectiveKind::kAllreduce, in[r], sum[r], kCount)), OkStatus());
    EXPECT_EQ(all[r]->Enqueue(Make(CollectiveKind::kAllgather, in[r], gathered[r], kCount)), OkStatus());
    EXPECT_EQ(all[r]->Enqueue(Make(CollectiveKind::kAllreduce, sum[r], sum[r], kCount)), OkStatus());
  }
  for (int32_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(all[r]->Synchronize(), OkStatus());
    for (int64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(sum[r][i], 9 * (10000 + static_cast<float>(i)));
      for (int32_t s = 0; s < kRanks; ++s) ASSERT_EQ(gathered[r][s * kCount + i], in[s][i]);
    }
  }
}

TEST(Communicator, SaysWhyACallIsRefused) {
  const Communicators all = Threads(2);
  std::vector<float> buffer(8);
  Call call = Make(CollectiveKind::kAllreduce, buffer, buffer, 8);
  call.receive = nullptr;
  EXPECT_EQ(all[0]->Enqueue(call).message(), "allreduce: the receive buffer is null");
  call = Make(CollectiveKind::kBroadcast, buffer, buffer, 8);
  call.root = Rank(2);
  EXPECT_EQ(all[0]->Enqueue(call).message(), "broadcast: root 2; expected 0 to 1");
  call.root = Rank(1);
  EXPECT_EQ(all[0]->Enqueue(call).message(),
            "rings: no plan for broadcast of 32 bytes of float on 2 ranks from root 1; the book has "
            "nothing");
  call = Make(CollectiveKind::kAllreduce, buffer, buffer, -1);
  EXPECT_EQ(all[0]->Enqueue(call).message(), "allreduce: count -1; expected 0 to 144115188075855872");
}

TEST(Communicator, AbortEndsTheOthers) {
  const Communicators all = Threads(2);
  std::vector<float> in(100), out(100);
  EXPECT_EQ(all[0]->Enqueue(Make(CollectiveKind::kAllreduce, in, out, 100)), OkStatus());
  EXPECT_EQ(all[0]->AsyncError(), OkStatus());
  all[1]->Abort();
  EXPECT_EQ(all[0]->Synchronize(), LimitReached("rank 1: aborted"));
  EXPECT_EQ(all[0]->AsyncError(), LimitReached("rank 1: aborted"));
  EXPECT_EQ(all[0]->Enqueue(Make(CollectiveKind::kAllreduce, in, out, 100)), LimitReached("rank 1: aborted"));
}

TEST(Communicator, ARankThatStaysAwayIsFoundByTheTimeLimit) {
  CommunicatorOptions options;
  options.time_limit = std::chrono::milliseconds(100);
  const Communicators all = Threads(2, options);
  std::vector<float> in(100), out(100);
  EXPECT_EQ(all[0]->Enqueue(Make(CollectiveKind::kAllgather, in, out, 50)), OkStatus());
  EXPECT_EQ(all[0]->Synchronize().message(),
            "rank 0: threadblock 0, instruction 2 (recv), pass 1 of 1: expected message 1 of rank 1 on "
            "channel 0, saw "
            "0; nothing moved for 100 ms");
}

ServedPlan Ring(CollectiveKind kind, int32_t ranks) {
  std::vector<ServedPlan> rings = Rings(ranks);
  return std::move(rings[kind == CollectiveKind::kAllreduce ? 0 : 1]);
}

TEST(Communicator, BooksAddUpAndTheLastOneThatServesIsTaken) {
  const Communicators all = Threads(2);
  for (const auto& each : all) {
    ServedPlan sums = Ring(CollectiveKind::kAllreduce, 2);
    sums.entry.max_bytes = 64;
    EXPECT_EQ(each->LoadPlans("small sums", {sums}), OkStatus());
    EXPECT_EQ(each->LoadPlans("gathers", {Ring(CollectiveKind::kAllgather, 2)}), OkStatus());
  }
  std::vector<float> in(64, 1.0f), out(2 * 64);
  for (const int64_t count : {16, 64}) {
    for (const CollectiveKind kind : {CollectiveKind::kAllreduce, CollectiveKind::kAllgather}) {
      std::vector<std::vector<float>> outs(2, out);
      for (int32_t r = 0; r < 2; ++r) EXPECT_EQ(all[r]->Enqueue(Make(kind, in, outs[r], count)), OkStatus());
      for (int32_t r = 0; r < 2; ++r) {
        EXPECT_EQ(all[r]->Synchronize(), OkStatus());
        EXPECT_EQ(outs[r][0], kind == CollectiveKind::kAllreduce ? 2.0f : 1.0f);
      }
    }
  }
  Call call = Make(CollectiveKind::kBroadcast, in, out, 1);
  call.root = Rank(0);
  EXPECT_EQ(
      all[0]->Enqueue(call).message(),
      "gathers, small sums, rings: no plan for broadcast of 4 bytes of float on 2 ranks from root 0; the "
      "books have nothing");
}

TEST(Communicator, RanksMayDifferInBeingInPlace) {
  const Communicators all = Threads(2);
  for (const auto& each : all) {
    ServedPlan in_place = Ring(CollectiveKind::kAllreduce, 2), apart = in_place;
    in_place.entry.in_place = InPlaceMode::kOnly;
    apart.entry.in_place = InPlaceMode::kNever;
    apart.program.in_place = false;
    EXPECT_EQ(each->LoadPlans("mixed", {apart, in_place}), OkStatus());
  }
  constexpr int64_t kCount = 1000;
  std::vector<float> a(kCount, 1.0f), b(kCount, 2.0f), out(kCount);
  EXPECT_EQ(all[0]->Enqueue(Make(CollectiveKind::kAllreduce, a, a, kCount)), OkStatus());
  EXPECT_EQ(all[1]->Enqueue(Make(CollectiveKind::kAllreduce, b, out, kCount)), OkStatus());
  for (int32_t r = 0; r < 2; ++r) EXPECT_EQ(all[r]->Synchronize(), OkStatus());
  EXPECT_EQ(a, std::vector<float>(kCount, 3.0f));
  EXPECT_EQ(out, a);
}

TEST(Communicator, BuffersThatOverlapInAnyOtherWayGiveTheRightNumbers) {
  const Communicators all = Threads(2);
  constexpr int64_t kCount = 1000;
  std::vector<std::vector<float>> buffers(2, std::vector<float>(2 * kCount + 7));
  for (int32_t r = 0; r < 2; ++r) {
    std::fill_n(buffers[r].begin() + 7, kCount, static_cast<float>(r + 1));
    Call call = Make(CollectiveKind::kAllgather, buffers[r], buffers[r], kCount);
    call.send += 7 * sizeof(float);
    EXPECT_EQ(all[r]->Enqueue(call), OkStatus());
  }
  for (int32_t r = 0; r < 2; ++r) {
    EXPECT_EQ(all[r]->Synchronize(), OkStatus());
    for (int64_t i = 0; i < 2 * kCount; ++i) ASSERT_EQ(buffers[r][i], i < kCount ? 1.0f : 2.0f) << i;
  }
}

TEST(Communicator, NoElementsNeedNoPlan) {
  Communicator lone(Rank(0), 2, std::move(ThreadBackends(2)[0]), {});
  std::vector<float> none;
  EXPECT_EQ(lone.Enqueue(Make(CollectiveKind::kReduceScatter, none, none, 0)), OkStatus());
  EXPECT_EQ(lone.Synchronize(), OkStatus());
}

TEST(Communicator, OneRankNeedsNoPlan) {
  Communicator alone(Rank(0), 1, std::move(ThreadBackends(1)[0]), {});
  std::vector<float> in = {1, 2, 3}, out(3);
  for (const CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAlltoall, CollectiveKind::kAllgather,
        CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast, CollectiveKind::kScatter}) {
    out.assign(3, 0);
    Call call = Make(kind, in, out, 3);
    call.root = Rank(0);
    EXPECT_EQ(alone.Enqueue(call), OkStatus());
    EXPECT_EQ(out, in) << ToString(kind);
  }
}

TEST(Communicator, AFailureInOneBookReachesRanksThatWaitInAnother) {
  const Communicators all = Threads(3);
  for (const auto& each : all) EXPECT_EQ(each->LoadPlans("more", {Rings(3)[0]}), OkStatus());
  std::vector<float> in(99), out(99);
  EXPECT_EQ(all[0]->Enqueue(Make(CollectiveKind::kAllreduce, in, out, 99)), OkStatus());  // a plan of "more"
  EXPECT_EQ(all[1]->Enqueue(Make(CollectiveKind::kAllgather, in, out, 33)), OkStatus());  // a plan of "rings"
  all[2]->Abort();
  for (int32_t r : {0, 1}) EXPECT_EQ(all[r]->Synchronize(), LimitReached("rank 2: aborted"));
}

TEST(Communicator, IdleRanksHearOfAFailure) {
  const Communicators all = Threads(2);
  all[1]->Abort();
  EXPECT_EQ(all[0]->AsyncError(), LimitReached("rank 1: aborted"));
  EXPECT_EQ(all[0]->Synchronize(), LimitReached("rank 1: aborted"));
}

TEST(Communicator, TheTimeLimitMayChangeAtAnyTimeAndHaveNoEnd) {
  const Communicators all = Threads(2, {.time_limit = kForEver});
  std::vector<float> in(100), out(100), other(100);
  EXPECT_EQ(all[0]->Enqueue(Make(CollectiveKind::kAllreduce, in, out, 100)), OkStatus());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(all[1]->Enqueue(Make(CollectiveKind::kAllreduce, in, other, 100)), OkStatus());
  EXPECT_EQ(all[0]->Synchronize(), OkStatus());
  all[0]->SetTimeLimit(std::chrono::milliseconds(10));
  EXPECT_EQ(all[0]->Enqueue(Make(CollectiveKind::kAllreduce, in, out, 100)), OkStatus());
  EXPECT_EQ(all[0]->Synchronize().code(), StatusCode::kLimit);
}

struct Processes {
  std::string name;
  bool one_host = true, dies = false;
};

// One process of a group: 0 when all was as it should be.
int RunProcess(const Processes& all, int32_t rank) {
  const auto environment = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "XCCL_RANK") return std::to_string(rank);
    if (name == "XCCL_SIZE") return "2";
    if (name == "XCCL_JOB") return all.name;
    if (name == "XCCL_HOST_ID" && !all.one_host) return "host" + std::to_string(rank);
    return std::nullopt;
  };
  StatusOr<std::unique_ptr<Bootstrap>> met = Bootstrap::Join(FindPlacement(environment).value(), {});
  if (!met.ok()) return 5;
  LaunchedGroup group(*std::move(met), {.network = NetworkKind::kOfi});
  Communicator communicator(Rank(rank), 2, ProcessBackend(group), {});
  if (!communicator.LoadPlans("rings", Rings(2)).ok()) return 1;
  std::vector<float> in(5000, static_cast<float>(rank + 1)), out(5000);
  if (all.dies && rank == 1) _exit(9);
  // A death may be known already.
  const Status queued = communicator.Enqueue(Make(CollectiveKind::kAllreduce, in, out, 5000));
  if (!queued.ok() && !all.dies) return 2;
  const Status status = communicator.Synchronize();
  if (all.dies) return status.message().find("rank 1: its process has ended") == 0 ? 0 : 3;
  return status.ok() && out == std::vector<float>(5000, 3.0f) ? 0 : 4;
}

TEST(Communicator, ProcessesOfOneHostAndOfTwo) {
  for (const bool one_host : {true, false}) {
    if (const Status found = ofi::Available(); !one_host && !found.ok()) GTEST_SKIP() << found.message();
    for (const bool dies : {false, true}) {
      const Processes all{fmt::format("test-{}-{}-{}", getpid(), one_host, dies), one_host, dies};
      std::vector<pid_t> children;
      for (int32_t rank : {0, 1}) {
        const pid_t child = fork();
        if (child == 0) _exit(RunProcess(all, rank));
        children.push_back(child);
      }
      for (int32_t rank : {0, 1}) {
        int ending = 0;
        waitpid(children[static_cast<size_t>(rank)], &ending, 0);
        EXPECT_TRUE(WIFEXITED(ending));
        EXPECT_EQ(WEXITSTATUS(ending), dies && rank == 1 ? 9 : 0) << all.name << " rank " << rank;
      }
    }
  }
}

// Ranks whose calls differ used to get wrong numbers, or to read past the end of a buffer.
TEST(Communicator, RanksWhoseCallsDifferAreToldBothCalls) {
  struct Case {
    std::string name;
    std::function<void(Call&)> change;  // changes rank 1's call
    std::string theirs;
  };
  const std::string own = "call 2, allreduce of 1000 float, sum";
  const std::vector<Case> cases = {
      {"count", [](Call& c) { c.count = 100; }, "call 2 is allreduce of 100 float, sum"},
      {"type", [](Call& c) { c.type = DataType::kDouble, c.count = 500; },
       "call 2 is allreduce of 500 double, sum"},
      {"operator", [](Call& c) { c.op = ReduceOp::kMax; }, "call 2 is allreduce of 1000 float, max"},
      {"collective", [](Call& c) { c.collective = CollectiveKind::kAllgather, c.count = 500; },
       "call 2 is allgather of 500 float"}};
  for (const Case& c : cases) {
    const Communicators all = Threads(2);
    // The calls that differ may take their plans from different books.
    for (const auto& each : all)
      EXPECT_EQ(each->LoadPlans("gathers", {Ring(CollectiveKind::kAllgather, 2)}), OkStatus());
    std::vector<std::vector<float>> in(2, std::vector<float>(1000, 1.0f)), out = in;
    for (int32_t call = 0; call < 2; ++call) {
      for (int32_t r = 0; r < 2; ++r) {
        Call made = Make(CollectiveKind::kAllreduce, in[r], out[r], 1000);
        if (call == 1 && r == 1) c.change(made);
        EXPECT_EQ(all[r]->Enqueue(made), OkStatus());
      }
    }
    const std::string by_0 = "rank 1: " + c.theirs + "; expected " + own + ", as on rank 0";
    const std::string by_1 = "rank 0: call 2 is" + own.substr(7) + "; expected " +
                             ("call 2," + c.theirs.substr(9)) + ", as on rank 1";
    for (int32_t r = 0; r < 2; ++r) {
      const Status status = all[r]->Synchronize();
      EXPECT_EQ(status.code(), StatusCode::kInvalidInput) << c.name;
      EXPECT_TRUE(status.message() == by_0 || status.message() == by_1)
          << c.name << ": " << status.message() << "\n"
          << by_1;
    }
  }
}

TEST(Communicator, ARankThatMissedACallIsFoundByTheNumberOfTheNext) {
  const Communicators all = Threads(2);
  std::vector<float> in(8), out(8), other(8);
  EXPECT_EQ(all[1]->Enqueue(Make(CollectiveKind::kAllreduce, in, other, 0)), OkStatus());
  for (int32_t r = 0; r < 2; ++r)
    EXPECT_EQ(all[r]->Enqueue(Make(CollectiveKind::kAllreduce, in, r == 0 ? out : other, 8)), OkStatus());
  const std::string text = all[0]->Synchronize().message();
  EXPECT_TRUE(text ==
                  "rank 1: call 2 is allreduce of 8 float, sum; expected call 1, allreduce of 8 float, sum, "
                  "as on rank 0" ||
              text ==
                  "rank 0: call 1 is allreduce of 8 float, sum; expected call 2, allreduce of 8 float, sum, "
                  "as on rank 1")
      << text;
}

// The others used to wait out the time limit, and to name a threadblock of their own.
TEST(Communicator, ARankThatDestroyedItsCommunicatorIsNamed) {
  Communicators all = Threads(2, {.time_limit = kForEver});
  std::vector<std::vector<float>> in(2, std::vector<float>(100, 1.0f)), out = in;
  for (int32_t r = 0; r < 2; ++r)
    EXPECT_EQ(all[r]->Enqueue(Make(CollectiveKind::kAllreduce, in[r], out[r], 100)), OkStatus());
  all[1].reset();
  EXPECT_EQ(all[0]->Synchronize(), OkStatus());  // it did its part
  EXPECT_EQ(out[0], std::vector<float>(100, 2.0f));
  EXPECT_EQ(all[0]->Enqueue(Make(CollectiveKind::kAllreduce, in[0], out[0], 100)), OkStatus());
  EXPECT_EQ(all[0]->Synchronize(),
            PeerEnded("rank 1: has left after call 1; expected it in call 2, allreduce of 100 "
                      "float, sum, with rank 0"));
}

}  // namespace
}  // namespace xccl
