#include "synth/common/justify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/simulate/simulate.h"
#include "ir/testing/graphs.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "synth/engines.h"

namespace xccl {
namespace {

constexpr int64_t kPlenty = 1'000'000;

Collective Of(CollectiveKind kind, const Topology& topology) {
  const std::optional<Rank> root = IsRooted(kind) ? std::optional(Rank(1)) : std::nullopt;
  return testing::MakeCollective(kind, topology.num_ranks(), root);
}

// Rank 0 sends what goes to the end of a line last: it arrives two chunks' times later than it could.
TEST(Justify, DataWithFarToGoGoesFirst) {
  const Topology line = testing::MakeGraph(4, {{0, 1}, {1, 2}, {2, 3}});
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kScatter;
  spec.root = Rank(0);
  for (int32_t r = 0; r < 4; ++r) spec.ranks.push_back(Rank(r));
  const Collective collective = Collective::Create(spec).value();
  Synthesis plan{.collective = collective, .schedule = {}, .exact = false, .engine = "test", .note = ""};
  plan.schedule.num_chunks = collective.num_chunks();
  const auto link = [&](int32_t from) {
    for (int32_t l = 0; l < line.num_links(); ++l)
      if (line.link(LinkId(l)).from == line.NodeOf(Rank(from)) &&
          line.link(LinkId(l)).to == line.NodeOf(Rank(from + 1)))
        return LinkId(l);
    return LinkId(-1);
  };
  for (int32_t to = 1, step = 0; to < 4; ++to)
    for (int32_t at = 0; at < to; ++at)
      plan.schedule.Add(ChunkId(to), 1, Rank(at), Rank(at + 1), std::vector{link(at)}, TransferOp::kCopy,
                        step++);
  Normalize(plan.schedule);
  ASSERT_TRUE(VerifySchedule(plan.schedule, collective, line).empty());
  const SynthesisRequest request{.topology = &line, .collective = &collective, .size_bytes = 160'000};
  plan.simulation = Simulate(plan.schedule, collective, line, TimingOf(request));
  // A chunk takes 4 us and a hop 1 us.
  EXPECT_EQ(plan.simulation->time_ps, 23'000'000);
  int64_t work = kPlenty;
  const std::optional<Synthesis> better = Justified(plan, request, work);
  ASSERT_TRUE(better);
  EXPECT_TRUE(VerifySchedule(better->schedule, collective, line).empty());
  EXPECT_EQ(better->simulation->time_ps, 15'000'000);
  EXPECT_LT(work, kPlenty);
  work = kPlenty;
  EXPECT_FALSE(Justified(*better, request, work));
  work = 0;
  EXPECT_FALSE(Justified(plan, request, work));
}

TEST(Justify, PlansOfEveryKindStayPlans) {
  int32_t faster = 0;
  for (const testing::Machine& machine : testing::Machines()) {
    if (machine.topology.num_ranks() < 3 || machine.topology.num_ranks() > 8) continue;
    for (const CollectiveKind kind :
         {CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kAllgather,
          CollectiveKind::kReduceScatter, CollectiveKind::kAllreduce, CollectiveKind::kAlltoall}) {
      const Collective collective = Of(kind, machine.topology);
      const SynthesisRequest request{
          .topology = &machine.topology, .collective = &collective, .size_bytes = 1 << 20};
      const StatusOr<Synthesis> plan = FindEngine("greedy").value()->Synthesize(request);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      const std::optional<Schedule> in_order =
          InOrderOfArrival(plan->schedule, plan->collective, machine.topology, request.size_bytes);
      ASSERT_TRUE(in_order);
      EXPECT_TRUE(VerifySchedule(*in_order, plan->collective, machine.topology).empty())
          << machine.name << " " << ToString(kind);
      Synthesis simulated = *plan;
      simulated.simulation = Simulate(plan->schedule, plan->collective, machine.topology, TimingOf(request));
      int64_t work = kPlenty;
      const std::optional<Synthesis> better = Justified(simulated, request, work);
      if (!better) continue;
      ++faster;
      EXPECT_TRUE(VerifySchedule(better->schedule, better->collective, machine.topology).empty());
      EXPECT_LT(better->simulation->time_ps, simulated.simulation->time_ps);
    }
  }
  EXPECT_GT(faster, 0);
}

}  // namespace
}  // namespace xccl
