#include <gtest/gtest.h>

#include "base/testing/shared_data.h"
#include "ir/analysis/bitwise_same.h"
#include "ir/bounds/bound.h"
#include "ir/lower/testing/checked.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "synth/common/tree_grower.h"
#include "synth/common/tree_pairs.h"
#include "synth/forest/forest.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// The topology with multicast and reduction of all switches set.
Topology With(const Topology& topology, bool multicast, bool reduce) {
  TopologySpec spec = topology.spec();
  for (Node& node : spec.nodes) {
    if (node.kind != NodeKind::kSwitch) continue;
    node.multicast = multicast;
    node.reduce = reduce;
  }
  return Topology::Create(std::move(spec)).value();
}

// GPU 0 is on a switch that multicasts and reduces; all other GPUs are behind a switch that does neither.
Topology SwitchBehindASwitch() {
  TopologySpec spec;
  spec.name = "two-switches";
  for (const char* gpu : {"0", "1", "2"})
    spec.nodes.push_back({NodeKind::kGpu, gpu, std::nullopt, false, false});
  spec.nodes.push_back({NodeKind::kSwitch, "a", std::nullopt, true, true});
  spec.nodes.push_back({NodeKind::kSwitch, "b", std::nullopt, false, false});
  for (const auto& [from, to] : {std::pair(0, 3), {3, 4}, {4, 1}, {4, 2}})
    for (const bool there : {true, false})
      spec.links.push_back(Link{NodeId(there ? from : to), NodeId(there ? to : from), 10'000'000'000, 1000});
  return Topology::Create(std::move(spec)).value();
}

struct Row {
  std::string name;
  Topology topology;
  double most = 0;  // largest time ÷ bound allowed, at 1 GiB
};

std::vector<Row> Rows() {
  std::vector<Row> rows = {
      {"switch", With(testing::MakeSwitch(8), true, true), 1.01},  // 1.75 without
      {"multicast alone", With(testing::MakeSwitch(4), true, false), 1.51},
      {"reduction alone", With(testing::MakeSwitch(4), false, true), 1.51},
      {"cluster", With(testing::MakeCluster(2, 4), true, true), 1.01},
      {"a switch that does not branch", SwitchBehindASwitch(), 1.34},
  };
  return rows;
}

Synthesis Allreduce(const Topology& topology) {
  const Collective collective =
      Collective::Create(
          testing::SpecOf(CollectiveKind::kAllreduce, testing::MemberLists(topology.num_ranks())[0]))
          .value();
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  request.size_bytes = kGiB;
  return ForestEngine().Synthesize(request).value();
}

double CheckedRatio(const Topology& topology) {
  const Synthesis made = Allreduce(topology);
  EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, topology)).message(), "");
  EXPECT_TRUE(IsBitwiseSame(made.schedule, made.collective, topology));
  const Program program = LowerChecked(made.schedule, made.collective, topology).value();
  EXPECT_EQ(ToStatus(VerifyProgram(program, made.collective, topology)).message(), "");
  const Bound bound =
      LowerBound(topology, made.collective, kGiB, TimeModel::kPipelined, BoundEffort::kExact).value();
  const int64_t time_ps = Simulate(made.schedule, made.collective, topology, {.size_bytes = kGiB}).time_ps;
  EXPECT_GE(time_ps, bound.bound_ps);
  return static_cast<double>(time_ps) / static_cast<double>(bound.bound_ps);
}

TEST(ForestPairs, UseWhatSwitchesCanDo) {
  for (const Row& row : Rows()) EXPECT_LE(CheckedRatio(row.topology), row.most) << row.name;
}

// Roots need different shares: equal shares give a ratio of 1.05.
TEST(ForestPairs, GiveRootsUnlikeShares) {
  const std::string name = "teccl_dgx2_2.xml";
  const auto path = SharedData("data/graphs/" + name);
  if (!path) GTEST_SKIP() << SharedDataMissing("data/graphs/" + name);
  EXPECT_LE(CheckedRatio(LoadTopology(*path).value()), 1.01);
}

TEST(TreeGrower, PaysTheWayToASwitchThatBranchesOnce) {
  const Topology topology = With(testing::MakeSwitch(4), true, false);
  const std::vector<Rank> members = testing::MemberLists(4)[0];
  const std::vector<double> cost(static_cast<size_t>(topology.num_links()), 1.0);
  struct Case {
    Branching branching;
    double cost;
  };
  for (const Case& expected :
       {Case{Branching::kNone, 6}, {Branching::kMulticast, 4}, {Branching::kReduce, 6}}) {
    std::vector<LinkId> links;
    const GrownTree tree = TreeGrower(topology, members, expected.branching).Grow(Rank(1), cost, 0, links);
    EXPECT_EQ(tree.cost, expected.cost);
    EXPECT_EQ(static_cast<double>(links.size()), expected.cost);
    ASSERT_EQ(tree.arcs.size(), 3u);
    for (size_t a = 0; a < 3; ++a) {
      EXPECT_EQ(tree.arcs[a].trunk, a > 0 && expected.branching == Branching::kMulticast ? 0 : -1);
      EXPECT_EQ(tree.arcs[a].from, Rank(1));
      EXPECT_EQ(tree.arcs[a].depth, 1);
    }
  }
}

}  // namespace
}  // namespace xccl
