#include "topologies/dead_ends.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

Link Joined(int32_t from, int32_t to) {
  return Link{.from = NodeId(from), .to = NodeId(to), .bandwidth_bytes_per_s = 1'000'000'000};
}

// GPUs 0 and 1 behind switch 2; NIC 3 at GPU 0, and CPU 4 behind it.
Topology Machine(bool with_nic) {
  TopologySpec spec{.name = "m", .source = "", .hosts = {}, .nodes = {}, .links = {}, .warnings = {}};
  const NodeKind kinds[] = {NodeKind::kGpu, NodeKind::kGpu, NodeKind::kSwitch, NodeKind::kNic,
                            NodeKind::kCpu};
  for (int32_t n = 0; n < 5; ++n) {
    Node node;
    node.kind = kinds[n];
    node.id = std::to_string(n);
    spec.nodes.push_back(node);
  }
  for (int32_t gpu : {0, 1}) {
    spec.links.push_back(Joined(gpu, 2));
    spec.links.push_back(Joined(2, gpu));
  }
  if (with_nic) {
    for (const auto& [a, b] : {std::pair{0, 3}, std::pair{3, 4}}) {
      spec.links.push_back(Joined(a, b));
      spec.links.push_back(Joined(b, a));
    }
  }
  return *Topology::Create(spec);
}

TEST(DeadEndsTest, ChainsThatLeadNowhereGo) {
  const std::optional<Topology> pruned = WithoutDeadEnds(Machine(true));
  ASSERT_TRUE(pruned.has_value());
  EXPECT_EQ(*pruned, Machine(false));
}

TEST(DeadEndsTest, NothingToTakeAway) { EXPECT_FALSE(WithoutDeadEnds(Machine(false)).has_value()); }

}  // namespace
}  // namespace xccl
