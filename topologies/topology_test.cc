#include "topologies/topology.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace xccl {
namespace {

TopologySpec Pair() {
  TopologySpec spec;
  spec.name = "t";
  spec.nodes = {Node{NodeKind::kGpu, "0", {}, false, false}, Node{NodeKind::kSwitch, "s", {}, false, false},
                Node{NodeKind::kGpu, "1", {}, false, false}};
  spec.links = {
      {NodeId(0), NodeId(1), 1, 0, 0}, {NodeId(1), NodeId(2), 1, 0, 0}, {NodeId(2), NodeId(1), 1, 0, 0}};
  return spec;
}

TEST(Topology, RanksHostsAndRows) {
  const StatusOr<Topology> topology = Topology::Create(Pair());
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->num_ranks(), 2);
  EXPECT_EQ(topology->num_hosts(), 1);
  EXPECT_EQ(topology->spec().hosts[0].name, "host");
  EXPECT_EQ(topology->NodeOf(Rank(1)), NodeId(2));
  EXPECT_EQ(topology->RankOf(NodeId(1)), std::nullopt);
  EXPECT_EQ(topology->HostOf(Rank(1)), HostId(0));
  EXPECT_EQ(topology->node(NodeId(1)).host, std::nullopt);
  ASSERT_EQ(topology->In(NodeId(1)).size(), 2u);
  EXPECT_EQ(topology->In(NodeId(1))[1], LinkId(2));
  EXPECT_EQ(topology->Out(NodeId(0)).size(), 1u);
  EXPECT_TRUE(topology->In(NodeId(0)).empty());
  EXPECT_EQ(topology->NodeName(NodeId(2)), "gpu 1");
  EXPECT_EQ(topology->LinkName(LinkId(1)), "s->1");
}

TEST(Topology, Rejects) {
  struct Case {
    void (*spoil)(TopologySpec&);
    const char* message;
  };
  constexpr Case kCases[] = {
      {[](TopologySpec& s) { s.nodes.clear(), s.links.clear(); }, "t: no gpu; expected at least one"},
      {[](TopologySpec& s) { s.nodes[2].id = "0"; }, "t: two nodes named gpu 0; expected ids that differ"},
      {[](TopologySpec& s) { s.gpu_arch = "h100"; },
       "t: arch 'h100': expected an architecture of GPUs such as sm90 or gfx942"},
      {[](TopologySpec& s) { s.gpu_arch = "sm"; },
       "t: arch 'sm': expected an architecture of GPUs such as sm90 or gfx942"},
      {[](TopologySpec& s) { s.gpu_arch = "sm9a"; },
       "t: arch 'sm9a': expected an architecture of GPUs such as sm90 or gfx942"},
      {[](TopologySpec& s) { s.gpu_arch = "gfx123456789"; },
       "t: arch 'gfx123456789': expected an architecture of GPUs such as sm90 or gfx942"},
      // The first of two, in the order of the nodes.
      {[](TopologySpec& s) {
         s.nodes.insert(s.nodes.begin(), {s.nodes[0], s.nodes[1]});
       },
       "t: two nodes named gpu 0; expected ids that differ"},
      {[](TopologySpec& s) { s.nodes[2].id = ""; }, "t: gpu '': expected a name"},
      {[](TopologySpec& s) { s.nodes[1].id = "a..b"; },
       R"(t: switch 'a..b': expected a name without '/', ',', '*', '<', '>', '"', '..' and blanks)"},
      {[](TopologySpec& s) {
         s.hosts = {Host{"h"}, Host{"h"}};
       },
       "t: two hosts named h; expected names that differ"},
      {[](TopologySpec& s) { s.hosts = {Host{"a/b"}}; },
       R"(t: host 'a/b': expected a name without '/', ',', '*', '<', '>', '"', '..' and blanks)"},
      {[](TopologySpec& s) { s.nodes[1].host = HostId(3); }, "t: node 1: no host 3; there are 1"},
      {[](TopologySpec& s) { s.links[1].to = NodeId(9); }, "t: link 1: no node 9; nodes are 0..2"},
      {[](TopologySpec& s) { s.links[1].to = NodeId(1); },
       "t: link 1: joins switch s to itself; expected two nodes"},
      {[](TopologySpec& s) { s.links[0].bandwidth_bytes_per_s = 0; },
       "t: link 0: bandwidth 0 B/s; expected more than zero"},
      {[](TopologySpec& s) { s.links[0].bandwidth_bytes_per_s = kMaxBandwidthBytesPerS + 1; },
       "t: link 0: bandwidth 1000000000000001B/s; expected at most 1000000GB/s"},
      {[](TopologySpec& s) {
         s.links[0].bandwidth_bytes_per_s = kMaxBandwidthBytesPerS;
         s.links.assign(2001, s.links[0]);
       },
       "t: links 0..2000 have more than 2000000000GB/s together; expected less in all"},
      {[](TopologySpec& s) { s.links[0].latency_ps = kMaxLatencyPs + 1; },
       "t: link 0: 1000000000001ps of latency or overhead; expected at most 1000ms"},
      {[](TopologySpec& s) { s.nodes[1].id = "s\xE9"; },
       "t: switch 's\xEF\xBF\xBD': byte 0xe9; expected UTF-8 text"},
      {[](TopologySpec& s) { s.links[0].latency_ps = -1; },
       "t: link 0: a latency or overhead below zero; expected zero or more"},
      {[](TopologySpec& s) { s.links[0].overhead_ps = -1; },
       "t: link 0: a latency or overhead below zero; expected zero or more"},
  };
  for (const Case& c : kCases) {
    TopologySpec spec = Pair();
    c.spoil(spec);
    EXPECT_EQ(Topology::Create(std::move(spec)).status().message(), c.message);
  }
}

// A file whose name is not UTF-8 may name its topology.
TEST(Topology, NameAndSourceAreMadeUtf8) {
  TopologySpec spec = Pair();
  spec.name = "n\xE9";
  spec.source = "n\xE9.xml";
  const StatusOr<Topology> topology = Topology::Create(std::move(spec));
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->name(), "n\xEF\xBF\xBD");
  EXPECT_EQ(topology->spec().source, "n\xEF\xBF\xBD.xml");
}

}  // namespace
}  // namespace xccl
