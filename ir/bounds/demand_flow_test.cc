#include "ir/bounds/demand_flow.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "topologies/families/short_forms.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

Collective Alltoall(std::vector<Rank> ranks) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAlltoall;
  spec.ranks = std::move(ranks);
  return Collective::Create(std::move(spec)).value();
}

std::vector<Topology> Machines() {
  std::vector<Topology> machines;
  for (const char* name : {"ring:5", "mesh:3x4", "torus:4x4x2", "fat-tree:k=4", "dragonfly:5x2x2",
                           "leaf-spine:4x2x4", "nvswitch:8", "full-mesh:6"})
    machines.push_back(ReadShortForm(name).value());
  machines.push_back(ReadNativeXml(R"(<topology name="uneven">
    <cluster hosts="3"><nvswitch gpus="4"/><nic id="nic"/><link from="gpu:*" to="nic:*" bandwidth="25GB/s"/>
    </cluster>
    <cluster hosts="2" name="small"><gpu count="2"/><nic id="nic"/>
      <link from="gpu:*" to="nic:*" bandwidth="50GB/s"/></cluster>
    <fabric type="switch"/></topology>)",
                                   "uneven.xml")
                         .value());
  return machines;
}

// The sums by numbers of members are the sums over all pairs: of all ranks, and of every other rank.
TEST(DemandFlow, CutsOfAlltoallAreThoseOfAllPairs) {
  for (const Topology& topology : Machines()) {
    std::vector<Rank> some;
    for (int32_t r = 0; r < topology.num_ranks(); r += 2) some.push_back(Rank(r));
    for (const std::vector<Rank>& ranks : {AllRanks(topology.num_ranks()), some}) {
      const Collective collective = Alltoall(ranks);
      const CollectiveSizes sizes(collective, 1 << 20);
      const Demands all = DemandsOf(topology, collective, sizes);
      const DemandFlow flow = DemandFlowOf(topology, collective, sizes, SymmetryGroup(topology), true);
      EXPECT_EQ(flow.cuts_s, QuickCuts(topology, all)) << topology.name();
      EXPECT_EQ(flow.sources, all.sources) << topology.name();
      EXPECT_EQ(flow.sinks, all.sources) << topology.name();
      ASSERT_EQ(flow.problem.demands.sources, all.sources) << topology.name();
      for (size_t s = 0; s < all.to.size(); ++s) {
        ASSERT_EQ(flow.problem.demands.to[s].size(), all.to[s].size());
        for (size_t i = 0; i < all.to[s].size(); ++i) {
          EXPECT_EQ(flow.problem.demands.to[s][i].node, all.to[s][i].node);
          EXPECT_EQ(flow.problem.demands.to[s][i].bytes, all.to[s][i].bytes);
          EXPECT_EQ(flow.problem.demands.to[s][i].part, all.to[s][i].part);
        }
      }
    }
  }
}

// One source of each orbit gives the same bound as all sources.
TEST(DemandFlow, OrbitsGiveTheBoundOfAllSources) {
  for (const Topology& topology : Machines()) {
    const Collective collective = Alltoall(AllRanks(topology.num_ranks()));
    const CollectiveSizes sizes(collective, 1 << 20);
    const DemandFlow all = DemandFlowOf(topology, collective, sizes, SymmetryGroup(topology), false);
    const DemandFlow orbits = DemandFlowOf(topology, collective, sizes, FindTranslations(topology), false);
    const double bound = SolveConcurrentFlow(all.problem, BoundFlowOptions(all.problem)).bound_s;
    EXPECT_NEAR(SolveConcurrentFlow(orbits.problem, BoundFlowOptions(orbits.problem)).bound_s, bound,
                bound * 1e-6)
        << topology.name();
  }
}

TEST(DemandFlow, NothingToSend) {
  const Topology topology = ReadShortForm("ring:4").value();
  const Collective collective = Alltoall(AllRanks(4));
  const DemandFlow flow =
      DemandFlowOf(topology, collective, CollectiveSizes(collective, 0), SymmetryGroup(topology), true);
  EXPECT_TRUE(flow.problem.demands.sources.empty());
  EXPECT_EQ(flow.cuts_s, 0);
}

}  // namespace
}  // namespace xccl
