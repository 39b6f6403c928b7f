#include "topologies/turned_switches.h"

#include <gtest/gtest.h>

#include <string>

#include "topologies/load/load.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {
namespace {

// `free`: no translation but the identity keeps a link in its place.
void ExpectEvenUse(const char* name, bool free) {
  SCOPED_TRACE(name);
  const Topology topology = LoadTopology(name).value();
  const SymmetryGroup found = FindTranslations(topology);
  ASSERT_TRUE(found.IsTransitive());
  const SymmetryGroup turned = TurnSwitches(topology, found);
  EXPECT_EQ(turned.order(), found.order());
  EXPECT_LE(turned.num_link_orbits(), found.num_link_orbits());
  EXPECT_TRUE(turned.IsTransitive());
  bool all_free = true;
  for (int32_t l = 0; l < topology.num_links(); ++l) all_free &= turned.IsFreeOn(LinkId(l));
  EXPECT_EQ(all_free, free);
}

// Four hosts of a leaf and four spines: each translate of a path passes a spine of its own.
TEST(TurnSwitches, MovesSpinesWithHosts) { ExpectEvenUse("leaf-spine:4x4x4", true); }

// The switches of a fat tree are as many as its hosts on each tier.
TEST(TurnSwitches, MovesAggregationAndCoreSwitches) {
  ExpectEvenUse("fat-tree:k=4", true);
  ExpectEvenUse("fat-tree:k=8", true);
}

// Two spines cannot give eight hosts a spine each.
TEST(TurnSwitches, SharesSpinesEvenlyWhereThereAreFew) { ExpectEvenUse("leaf-spine:4x2x8", false); }

TEST(TurnSwitches, LeavesAMachineWithoutSwitchesAsItIs) {
  const Topology torus = LoadTopology("torus:4x4").value();
  const SymmetryGroup group = FindTranslations(torus);
  EXPECT_EQ(TurnSwitches(torus, group).generators(), group.generators());
}

}  // namespace
}  // namespace xccl
