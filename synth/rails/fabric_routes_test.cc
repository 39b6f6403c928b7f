#include "synth/rails/fabric_routes.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {
namespace {

constexpr int64_t kBandwidth = 50'000'000'000;

// Leaves 0.. and then spines; cables[l][s] join leaf l to spine s.
Topology LeafSpine(const std::vector<std::vector<int32_t>>& cables) {
  TopologySpec spec{.name = "leaves", .source = "", .hosts = {}, .nodes = {}, .links = {}, .warnings = {}};
  const size_t leaves = cables.size(), spines = cables[0].size();
  for (size_t n = 0; n < leaves + spines; ++n)
    spec.nodes.push_back({NodeKind::kSwitch, fmt::format("s{}", n), std::nullopt});
  spec.hosts.push_back({"h0"});
  for (size_t l = 0; l < leaves; ++l) {
    spec.nodes.push_back({NodeKind::kGpu, std::to_string(l), HostId(0)});
    const auto join = [&](size_t a, size_t b) {
      const NodeId x(static_cast<int64_t>(a)), y(static_cast<int64_t>(b));
      spec.links.push_back({x, y, kBandwidth, 0, 0});
      spec.links.push_back({y, x, kBandwidth, 0, 0});
    };
    join(leaves + spines + l, l);
    for (size_t s = 0; s < spines; ++s)
      for (int32_t i = 0; i < cables[l][s]; ++i) join(l, leaves + s);
  }
  return Topology::Create(std::move(spec)).value();
}

struct Use {
  std::map<int32_t, int32_t> leaving, entering;  // streams by leaf
  std::map<int32_t, int32_t> passing;            // streams by link
};

// Routes the streams, and expects ways from end to end.
Use UseOf(const Topology& topology, const std::vector<Stream>& streams) {
  Use use;
  const auto ways = FabricRoutes(topology, kBandwidth).Ways(streams);
  EXPECT_EQ(ways.size(), streams.size());
  for (size_t i = 0; i < ways.size(); ++i) {
    EXPECT_TRUE(ways[i].has_value());
    NodeId at = streams[i].from;
    for (LinkId l : *ways[i]) {
      EXPECT_EQ(topology.link(l).from, at);
      at = topology.link(l).to;
      ++use.passing[l.value];
    }
    EXPECT_EQ(at, streams[i].to);
    if (streams[i].from == streams[i].to) continue;
    ++use.leaving[streams[i].from.value];
    ++use.entering[streams[i].to.value];
  }
  return use;
}

std::vector<Stream> DrawStreams(std::minstd_rand& random, size_t leaves, size_t count) {
  std::vector<Stream> streams;
  for (size_t i = 0; i < count; ++i)
    streams.push_back(
        {NodeId(static_cast<int64_t>(random() % leaves)), NodeId(static_cast<int64_t>(random() % leaves))});
  return streams;
}

TEST(FabricRoutes, EveryUplinkOfEveryLeafCarriesEquallyManyStreamsOrOneMore) {
  std::minstd_rand random(1);
  for (int32_t draw = 0; draw < 400; ++draw) {
    const size_t leaves = 2 + random() % 12;
    // One cable to each spine, or two.
    std::vector<int32_t> of_spine(1 + random() % 8);
    int32_t cables = 0;
    for (int32_t& count : of_spine) cables += count = static_cast<int32_t>(1 + random() % 2);
    const Topology topology = LeafSpine(std::vector(leaves, of_spine));
    const Use use = UseOf(topology, DrawStreams(random, leaves, random() % 100));
    for (const auto& [l, streams] : use.passing) {
      const Link& link = topology.link(LinkId(l));
      const bool up = link.from.index() < leaves;
      const int32_t all = up ? use.leaving.at(link.from.value) : use.entering.at(link.to.value);
      ASSERT_LE(streams, (all + cables - 1) / cables) << "draw " << draw << ", link " << l;
    }
  }
}

// Leaf 0 lacks its cable to spine 1, so a stream of leaf 1 leaves spine 0 to it.
TEST(FabricRoutes, StreamsLeaveSpinesToLeavesThatHaveNoOther) {
  const Topology topology = LeafSpine({{1, 0}, {1, 1}, {1, 1}});
  for (const bool lacking_first : {true, false}) {
    std::vector<Stream> streams = {{NodeId(0), NodeId(2)}, {NodeId(1), NodeId(2)}};
    if (!lacking_first) std::swap(streams[0], streams[1]);
    for (const auto& [l, count] : UseOf(topology, streams).passing) EXPECT_EQ(count, 1) << "link " << l;
  }
}

TEST(FabricRoutes, LeavesThatNothingJoinsHaveNoWay) {
  const Topology topology = LeafSpine({{1}, {1}, {0}});
  const auto ways = FabricRoutes(topology, kBandwidth)
                        .Ways(std::vector<Stream>{{NodeId(0), NodeId(2)}, {NodeId(0), NodeId(1)}});
  EXPECT_FALSE(ways[0].has_value());
  EXPECT_TRUE(ways[1].has_value());
}

}  // namespace
}  // namespace xccl
