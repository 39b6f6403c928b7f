// The text of `topo --format dot` is a picture and the machine: it reads back to the same value.
#include <gtest/gtest.h>

#include <algorithm>

#include "draw/draw.h"
#include "draw/layout/layout.h"
#include "tests/testing/topologies.h"
#include "topologies/load/load.h"
#include "topologies/peers/peers.h"
#include "topologies/xml/native_xml.h"

namespace xccl::testing {
namespace {

// Requires: the picture folds nothing.
void ExpectBack(const Topology& topology, const MachineLayout& layout) {
  const std::string dot = TopologyDot(topology, layout);
  ASSERT_TRUE(IsPeerTopology(dot));
  const StatusOr<Topology> back = ReadPeerTopology(dot, "machine.dot", {});
  ASSERT_TRUE(back.ok()) << back.status().message() << "\n" << dot;
  EXPECT_EQ(WriteNativeXml(*back), WriteNativeXml(topology)) << dot;
  EXPECT_TRUE(*back == topology) << dot;
  EXPECT_TRUE(back->spec().warnings.empty()) << back->spec().warnings[0];
}

bool Folds(const MachineLayout& layout) { return std::ranges::any_of(layout.items, &DrawnItem::folded); }

TEST(Dot, RandomMachinesComeBack) {
  int read = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Topology topology = MakeRandomMachine(seed, {.max_ranks = 12, .max_switches = 4});
    const MachineLayout layout = LayOut(topology);
    if (Folds(layout)) continue;
    ExpectBack(topology, layout);
    ++read;
  }
  EXPECT_GT(read, 900);
}

TEST(Dot, MachinesOfTheLibraryComeBack) {
  int folded = 0;
  for (const std::string& name : LibraryNamesUpTo(20'000)) {  // larger ones take seconds each
    const Topology topology = LoadTopology(name).value();
    const MachineLayout layout = LayOut(topology);
    if (!Folds(layout)) {
      ExpectBack(topology, layout);
      continue;
    }
    ++folded;
    EXPECT_EQ(
        ReadPeerTopology(TopologyDot(topology, layout), "machine.dot", {}).status().message(),
        "machine.dot: a picture that folds several nodes into one; expected every node; hint: xccl-synth "
        "topo --format xml writes them all");
  }
  EXPECT_GT(folded, 0);
}

}  // namespace
}  // namespace xccl::testing
