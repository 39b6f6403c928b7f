#include "topologies/turned_switches.h"

#include <gtest/gtest.h>

#include <string>

#include "topologies/load/load.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

// `free`: no translation but the identity keeps a link in its place.
void ExpectEvenUse(const Topology& topology, bool free) {
  SCOPED_TRACE(topology.spec().name);
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

void ExpectEvenUse(const char* name, bool free) { ExpectEvenUse(LoadTopology(name).value(), free); }

// Four hosts of a leaf and four spines: each translate of a path passes a spine of its own.
TEST(TurnSwitches, MovesSpinesWithHosts) { ExpectEvenUse("leaf-spine:4x4x4", true); }

// The switches of a fat tree are as many as its hosts on each tier.
TEST(TurnSwitches, MovesAggregationAndCoreSwitches) {
  ExpectEvenUse("fat-tree:k=4", true);
  ExpectEvenUse("fat-tree:k=8", true);
}

// Two spines cannot give eight hosts a spine each.
TEST(TurnSwitches, SharesSpinesEvenlyWhereThereAreFew) { ExpectEvenUse("leaf-spine:4x2x8", false); }

// A leaf joins two hosts of four GPUs. Neither hosts nor GPUs are as many as the eight spines, but both
// together.
TEST(TurnSwitches, MovesSpinesWithHostsAndGpus) {
  ExpectEvenUse(ReadNativeXml(R"(<topology name="leaves">
  <cluster hosts="4">
    <nvswitch gpus="4" bandwidth="450GB/s" latency="500ns"/>
    <nic id="nic" count="4"/>
    <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="50GB/s" latency="0ns"/>
    <fabric type="leaf-spine" leaves="2" spines="8" bandwidth="50GB/s" latency="1us"/>
  </cluster>
</topology>)",
                              "leaves.xml")
                    .value(),
                true);
}

// Sixteen leaves could spread over eight spines what one GPU sends, but not what all GPUs of a leaf send at
// once.
TEST(TurnSwitches, GpusOfALeafComeBeforeLeaves) {
  ExpectEvenUse(ReadNativeXml(R"(<topology name="pods">
  <cluster hosts="2" name="pod">
    <cluster hosts="16">
      <nvswitch gpus="4" bandwidth="450GB/s" latency="500ns"/>
      <nic id="nic" count="4"/>
      <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="50GB/s" latency="0ns"/>
      <fabric type="leaf-spine" leaves="8" spines="8" bandwidth="50GB/s" latency="1us"/>
    </cluster>
    <fabric id="above" count="8" oversubscription="4" latency="300ns"/>
  </cluster>
</topology>)",
                              "pods.xml")
                    .value(),
                true);
}

TEST(TurnSwitches, LeavesAMachineWithoutSwitchesAsItIs) {
  const Topology torus = LoadTopology("torus:4x4").value();
  const SymmetryGroup group = FindTranslations(torus);
  EXPECT_EQ(TurnSwitches(torus, group).generators(), group.generators());
}

}  // namespace
}  // namespace xccl
