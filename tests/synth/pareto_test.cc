#include "synth/smt/pareto.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "synth/engines.h"
#include "synth/smt/schedule.h"

namespace xccl::smt {
namespace {

struct Row {
  std::string name;
  Topology topology;
  CollectiveKind kind;
  bool divergent;
  std::string expected;  // "S: R/C by proof, ..."
};

std::string Text(const Front& front) {
  std::string text;
  for (const FrontPoint& point : front.points)
    text += fmt::format("{}{}: {} by {}", text.empty() ? "" : ", ", point.steps,
                        ToText({point.rounds, point.chunks}), ToString(point.proved_by));
  return text + (front.complete ? "" : ", stopped by " + front.stopped);
}

TEST(SmtPareto, KnownFronts) {
  const std::vector<Row> rows = {
      {"dgx1 allgather", testing::MakeDgx1(), CollectiveKind::kAllgather, false,
       "2: 3/2 by flow, 3: 7/6 by cut"},
      {"dgx1 reduce_scatter", testing::MakeDgx1(), CollectiveKind::kReduceScatter, false,
       "2: 3/2 by flow, 3: 7/6 by cut"},
      {"dgx1 alltoall", testing::MakeDgx1(), CollectiveKind::kAlltoall, false, "2: 8/3 by flow"},
      {"ring alltoall", testing::MakeRing(8), CollectiveKind::kAlltoall, false, "4: 8 by flow"},
      {"switch allgather", testing::MakeSwitch(4), CollectiveKind::kAllgather, false, "1: 3 by cut"},
      {"switch alltoall", testing::MakeSwitch(4), CollectiveKind::kAlltoall, false, "1: 3 by flow"},
      {"mesh gather", testing::MakeGrid({2, 3}, false), CollectiveKind::kGather, false, "3: 5/2 by cut"},
      {"ring allreduce", testing::MakeRing(4), CollectiveKind::kAllreduce, true,
       "2: 1 by smt-unsat, 3: 3/4 by cut"},
      {"ring of 5 allreduce", testing::MakeRing(5), CollectiveKind::kAllreduce, true,
       "3: 6/5 by smt-unsat, 4: 4/5 by cut"},
  };
  for (const Row& row : rows) {
    const std::vector<Rank> ranks = AllRanks(row.topology.num_ranks());
    CollectiveSpec spec = testing::SpecOf(row.kind, ranks);
    if (spec.root) spec.root = Rank(0);
    const Collective collective = Collective::Create(spec).value();
    SynthesisRequest request;
    request.topology = &row.topology;
    request.collective = &collective;
    request.allow_divergent = row.divergent;
    const StatusOr<Front> front = FindFront(request, AllEngines());
    ASSERT_TRUE(front.ok()) << row.name << ": " << front.status().message();
    EXPECT_EQ(Text(*front), row.expected) << row.name;
    const Machine machine = MakeMachine(row.topology);
    for (const FrontPoint& point : front->points) {
      EXPECT_EQ(ToStatus(VerifySchedule(point.made.schedule, point.made.collective, row.topology)),
                OkStatus())
          << row.name;
      const StepsAndRounds took = Take(point.made.schedule, row.topology, machine);
      EXPECT_LE(took.steps, point.steps) << row.name;
      EXPECT_LE(took.rounds, point.rounds) << row.name;
    }
  }
}

// Beyond 12 chunks only points that meet the bound are searched, so no more can be claimed. If links carry
// many chunks per round, only the bound's own number of chunks is searched.
TEST(SmtPareto, ProofsHoldForTheChunksThatWereTried) {
  TopologySpec spec = testing::MakeFullMesh(3).spec();
  for (Link& link : spec.links) {
    const bool first = link.from.value + link.to.value == 1;
    link.bandwidth_bytes_per_s = first ? 17'000'000'000 : 25'000'000'000;
  }
  const Topology mesh = Topology::Create(spec).value();
  const Collective allgather =
      Collective::Create(testing::SpecOf(CollectiveKind::kAllgather, {Rank(0), Rank(1), Rank(2)})).value();
  SynthesisRequest request;
  request.topology = &mesh;
  request.collective = &allgather;
  request.limits.steps = 1;
  EXPECT_EQ(Text(*FindFront(request, AllEngines())), "1: 1/17 by flow, stopped by --steps=1");
  request.limits.chunks = 16;
  const StatusOr<Front> front = FindFront(request, AllEngines());
  ASSERT_EQ(front->points.size(), 1u);
  EXPECT_EQ(front->points[0].chunks, 12);
  EXPECT_EQ(front->points[0].proved_chunks, 12);
}

TEST(SmtPareto, LimitsLeaveItIncomplete) {
  const Topology dgx1 = testing::MakeDgx1();
  const std::vector<Rank> ranks = AllRanks(8);
  const Collective allgather = Collective::Create(testing::SpecOf(CollectiveKind::kAllgather, ranks)).value();
  SynthesisRequest request;
  request.topology = &dgx1;
  request.collective = &allgather;
  request.limits.steps = 2;
  EXPECT_EQ(Text(*FindFront(request, AllEngines())), "2: 3/2 by flow, stopped by --steps=2");
  request.limits.steps.reset();
  request.limits.chunks = 2;
  EXPECT_EQ(Text(*FindFront(request, AllEngines())), "2: 3/2 by flow, stopped by --steps=10, its default");
  Interrupt interrupt;
  interrupt.Set();
  request.limits.deadline = Deadline().With(interrupt).Leaving(0, 0);
  EXPECT_EQ(FindFront(request, AllEngines()).status(),
            LimitReached("smt: allgather on 8 ranks: no point of the front was found; interrupted"));
}

}  // namespace
}  // namespace xccl::smt
