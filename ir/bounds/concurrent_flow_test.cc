#include "ir/bounds/concurrent_flow.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/sizes.h"
#include "ir/translated.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

Collective Alltoall(int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAlltoall;
  spec.ranks = AllRanks(ranks);
  return Collective::Create(spec).value();
}

// Adds up the loads of all links by the trees and their translates; returns the seconds of the busiest link.
double BusiestOf(const Topology& topology, const FlowProblem& problem, const ConcurrentFlow& flow) {
  std::vector<double> load(problem.share.size(), 0);
  std::vector<double> weight(problem.demands.sources.size(), 0);
  for (const FlowTree& tree : flow.trees) {
    const size_t s = static_cast<size_t>(tree.source);
    weight[s] += tree.weight;
    for (const Demands::To& to : problem.demands.to[s])
      for (NodeId at(to.node); at.value != problem.demands.sources[s];) {
        const LinkId via = tree.into[at.index()];
        const size_t orbit = static_cast<size_t>(problem.orbit[via.index()]);
        load[orbit] += to.bytes * tree.weight * problem.share[orbit];
        at = topology.link(via).from;
      }
  }
  for (const double w : weight) EXPECT_NEAR(w, 1, 1e-9);
  double busiest = 0;
  for (size_t l = 0; l < problem.orbit.size(); ++l)
    busiest = std::max(
        busiest,
        load[static_cast<size_t>(problem.orbit[l])] /
            static_cast<double>(topology.link(LinkId(static_cast<int64_t>(l))).bandwidth_bytes_per_s));
  return busiest;
}

struct Row {
  const char* machine;
  double load;  // how often parts cross the busiest link, if all links are equal
};

class ConcurrentFlowOf : public ::testing::TestWithParam<Row> {};

// Computed by hand, in parts: n²/8 on an even ring of n, (n²-1)/8 on an odd one, n times as many on a
// square torus of such rings; 2^(d-1) on a cube; n³/4 on a square mesh of even side n; 1 on a full mesh.
TEST_P(ConcurrentFlowOf, LoadsAreTheKnownOptimum) {
  const Topology topology = LoadTopology(GetParam().machine).value();
  const Collective collective = Alltoall(topology.num_ranks());
  const CollectiveSizes sizes(collective, int64_t{1} << 30);
  const Demands demands = DemandsOf(topology, collective, sizes);
  const double unit = static_cast<double>(sizes.PartBytes(PartId(1))) /
                      static_cast<double>(topology.link(LinkId(0)).bandwidth_bytes_per_s);
  for (const SymmetryGroup& group :
       {TranslationsFor(collective, topology, &sizes), SymmetryGroup(topology)}) {
    const FlowProblem problem = FlowOf(topology, demands, group);
    const ConcurrentFlow flow = SolveConcurrentFlow(problem, {});
    EXPECT_NEAR(flow.bound_s / unit, GetParam().load, 1e-6 * GetParam().load);
    EXPECT_TRUE(flow.MeetsBound()) << flow.load_s / flow.bound_s;
    EXPECT_NEAR(BusiestOf(topology, problem, flow) / flow.load_s, 1, 1e-4);
    EXPECT_LE(CrowdedFlowBound(problem, 20), flow.bound_s * (1 + 1e-9));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ConcurrentFlowOf,
                         ::testing::Values(Row{"ring:8", 8}, Row{"ring:5", 3}, Row{"torus:4x4", 8},
                                           Row{"torus:5x5", 15}, Row{"hypercube:4", 8}, Row{"mesh:4x4", 16},
                                           Row{"full-mesh:6", 1}),
                         [](const auto& info) {
                           std::string name = info.param.machine;
                           std::ranges::replace_if(
                               name, [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

TEST(ConcurrentFlow, OfNothingIsNothing) {
  const Topology topology = LoadTopology("ring:4").value();
  const ConcurrentFlow flow = SolveConcurrentFlow(FlowOf(topology, {}, SymmetryGroup(topology)), {});
  EXPECT_TRUE(flow.trees.empty());
  EXPECT_EQ(flow.bound_s, 0);
}

// The linear program ignores a source that is tiny beside other sources. That source had no tree, and the
// flow engine crashed.
TEST(ConcurrentFlow, ASourceOfNextToNothingHasATree) {
  const Topology topology = LoadTopology("ring:3").value();
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAlltoallv;
  spec.ranks = {Rank(0), Rank(1), Rank(2)};
  spec.counts = {0, 1'000'000'000'000'000, 5, 3, 0, 7, 1, 1, 1};
  const Collective collective = Collective::Create(spec).value();
  const Demands demands = DemandsOf(topology, collective, CollectiveSizes(collective, int64_t{1} << 50), 1);
  ASSERT_EQ(demands.sources.size(), 3u);
  const FlowProblem problem = FlowOf(topology, demands, SymmetryGroup(topology));
  const ConcurrentFlow flow = SolveConcurrentFlow(problem, {});
  EXPECT_NEAR(BusiestOf(topology, problem, flow) / flow.bound_s, 1, 1e-6);
}

// One round already gives trees, though worse ones.
TEST(ConcurrentFlow, StopsWhenItIsToldTo) {
  const Topology topology = LoadTopology("mesh:4x4").value();
  const Collective collective = Alltoall(topology.num_ranks());
  const CollectiveSizes sizes(collective, int64_t{1} << 30);
  const FlowProblem problem =
      FlowOf(topology, DemandsOf(topology, collective, sizes), SymmetryGroup(topology));
  const ConcurrentFlow whole = SolveConcurrentFlow(problem, {});
  int32_t asked = 0;
  const ConcurrentFlow stopped = SolveConcurrentFlow(problem, {.stopped = [&] { return ++asked == 1; }});
  EXPECT_EQ(asked, 1);
  EXPECT_GT(stopped.load_s, whole.load_s * 1.01);
  EXPECT_FALSE(stopped.MeetsBound());
  EXPECT_NEAR(BusiestOf(topology, problem, stopped) / stopped.load_s, 1, 1e-4);
}

// For a symmetric machine of 256 ranks, the program has four rows.
TEST(ConcurrentFlow, SymmetryLeavesOneSourceAnOrbit) {
  const Topology topology = LoadTopology("torus:16x16").value();
  const Collective collective = Alltoall(topology.num_ranks());
  const CollectiveSizes sizes(collective, int64_t{1} << 30);
  const FlowProblem problem =
      FlowOf(topology, DemandsOf(topology, collective, sizes), TranslationsFor(collective, topology, &sizes));
  EXPECT_EQ(problem.demands.sources.size(), 1u);
  EXPECT_EQ(problem.share.size(), 4u);
  EXPECT_TRUE(SolveConcurrentFlow(problem, {}).MeetsBound());
}

}  // namespace
}  // namespace xccl
