#include <gtest/gtest.h>

#include "topologies/load/load_for_tests.h"
#include "topologies/peers/peers_for_tests.h"

namespace xccl {
namespace {

using Texts = std::vector<std::string>;

LoadOptions Link(std::string text) {
  LoadOptions options;
  options.link = std::move(text);
  return options;
}

// Two hosts of one GPU with a NIC, as ForestColl's functions name nodes.
constexpr std::string_view kGraphml = R"xml(<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="edge" attr.name="capacity" attr.type="long" />
  <graph edgedefault="directed">
    <node id="(0, 'GPU', 0)" /><node id="(0, 'mlx5', 0)" />
    <node id="(1, 'GPU', 0)" /><node id="(1, 'mlx5', 0)" /><node id="(-1, 'IB', 0)" />
    <edge source="(0, 'GPU', 0)" target="(0, 'mlx5', 0)"><data key="d0">25</data></edge>
    <edge source="(0, 'mlx5', 0)" target="(0, 'GPU', 0)"><data key="d0">25</data></edge>
    <edge source="(0, 'mlx5', 0)" target="(-1, 'IB', 0)"><data key="d0">25</data></edge>
    <edge source="(1, 'GPU', 0)" target="(1, 'mlx5', 0)"><data key="d0">0</data></edge>
  </graph>
</graphml>
)xml";

TEST(Graphml, NodesOfForestColl) {
  const StatusOr<Topology> topology = ReadPeer(kGraphml, Link("latency=1us"));
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->num_ranks(), 2);
  EXPECT_EQ(topology->num_hosts(), 2);
  EXPECT_EQ(Cables(*topology), (Texts{"h0/0--h0/mlx50 25GB/s 1us", "h0/mlx50->IB0 25GB/s 1us"}));
  EXPECT_EQ(topology->node(NodeId(1)).kind, NodeKind::kNic);
  EXPECT_EQ(topology->node(NodeId(4)).kind, NodeKind::kSwitch);
  EXPECT_EQ(topology->spec().warnings, Texts());
  EXPECT_EQ(ReadPeer(kGraphml)->spec().warnings,
            Texts{"folder/peer.txt: links without a latency; 500ns assumed; hint: --link latency=1us"});
}

TEST(Graphml, DrawingsOfYed) {
  const StatusOr<Topology> topology = ReadPeer(R"(<graphml xmlns:y="http://www.yworks.com/xml/graphml">
    <key id="l" for="node" yfiles.type="nodegraphics"/><key id="e" for="edge" yfiles.type="edgegraphics"/>
    <graph edgedefault="undirected">
      <node id="n0"><data key="l"><y:ShapeNode><y:NodeLabel>GPU 0</y:NodeLabel></y:ShapeNode></data></node>
      <node id="g"><graph edgedefault="directed">
        <node id="n1"><data key="l"><y:ShapeNode><y:NodeLabel>a switch</y:NodeLabel></y:ShapeNode></data></node>
      </graph></node>
      <edge source="n0" target="n1"><data key="e"><y:L><y:EdgeLabel>2 x 400Gb/s</y:EdgeLabel></y:L></data></edge>
    </graph></graphml>)",
                                               Link("latency=0ns"));
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(Cables(*topology), (Texts{"n0--n1 50GB/s 0ns", "n0--n1 50GB/s 0ns"}));
}

TEST(Graphml, AnEdgeMayHaveAnotherDirectionThanItsGraph) {
  const StatusOr<Topology> topology = ReadPeer(R"(<graphml>
    <key id="b" for="edge" attr.name="bandwidth"><default>50GB/s</default></key>
    <graph edgedefault="directed"><node id="gpu0"/><node id="gpu1"/><node id="gpu2"/>
    <edge source="gpu0" target="gpu1"/><edge source="gpu1" target="gpu2" directed="false"/></graph>
    </graphml>)",
                                               Link("latency=0ns"));
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(Cables(*topology), (Texts{"0->1 50GB/s 0ns", "1--2 50GB/s 0ns"}));
}

TEST(Graphml, RefusesWithThePlace) {
  EXPECT_EQ(Refusal("<graphml>\n<graph><node id='a'/><edge source='a' target='b'/></graph></graphml>"),
            "folder/peer.txt:2:23: target: no node b");
  EXPECT_EQ(Refusal("<graphml>\n<graph><node id='a'/><node id='a'/></graph></graphml>"),
            "folder/peer.txt:2:23: a second node a; expected another id");
  EXPECT_EQ(Refusal("<graphml/>"), "folder/peer.txt: a <graphml> without <graph>");
}

TEST(NodeLink, TuplesAndUnits) {
  const std::string text = R"({"directed":true,"multigraph":false,"graph":{},
    "nodes":[{"id":[0,"GPU",0]},{"id":[0,"GPU",1]},{"id":[0,"NVSwitch",0]}],
    "links":[{"capacity":300,"source":[0,"GPU",0],"target":[0,"NVSwitch",0]},
             {"capacity":300,"source":[0,"NVSwitch",0],"target":[0,"GPU",1]}]})";
  const StatusOr<Topology> topology = ReadPeer(text, Link("latency=1us"));
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(Cables(*topology), (Texts{"0->NVSwitch0 300GB/s 1us", "NVSwitch0->1 300GB/s 1us"}));
  EXPECT_EQ(topology->spec().warnings, Texts());
}

TEST(NodeLink, NumbersWithoutUnits) {
  const std::string text = R"({"directed":false,"nodes":[{"id":0},{"id":1}],
    "edges":[{"weight":2,"source":0,"target":1}]})";
  EXPECT_EQ(Refusal(text),
            "folder/peer.txt: edge from 0 to 1: no bandwidth; expected one here, or a flag; hint: --link "
            "bandwidth=50GB/s");
  const Topology counted = ReadPeer(text, Link("bandwidth=25GB/s,latency=1us")).value();
  EXPECT_EQ(Cables(counted), Texts{"0--1 50GB/s 1us"});
  EXPECT_EQ(counted.spec().warnings, Texts{"folder/peer.txt: all nodes of no known kind are read as GPUs"});
  const std::string rates = R"({"nodes":[{"id":"gpu0"},{"id":"x"}],
    "links":[{"bandwidth":100,"delay":300,"source":"gpu0","target":"x"}]})";
  const Topology guessed = ReadPeer(rates).value();
  EXPECT_EQ(Cables(guessed), Texts{"0->x 100GB/s 300ns"});
  EXPECT_EQ(guessed.spec().warnings,
            (Texts{"folder/peer.txt: 1 node of no known kind is read as switches",
                   "folder/peer.txt: bandwidth is a number without a unit; read as GB/s; hint: --link "
                   "bandwidth=1Gbit/s says what 1 is",
                   "folder/peer.txt: latencies are numbers without a unit; read as ns"}));
  EXPECT_EQ(Refusal(R"({"nodes":[{"id":0}],"links":[{"source":0,"target":1}]})"),
            "folder/peer.txt: links[0].target: no node 1");
}

TEST(Dot, ChainsSubgraphsPortsAndComments) {
  const StatusOr<Topology> topology = ReadPeer(R"(# a line of a preprocessor
strict graph "my net" { // a comment
  node [shape=box]; edge [bandwidth="50GB/s", latency=1us]
  /* two hosts */
  subgraph cluster_a { label="node a"; gpu0; gpu1 [label=<<b>html</b>>] }
  subgraph cluster_b { label=b; gpu2 }
  gpu0:p:ne -- {sw0 "sw" + "1"} -- gpu2 [bandwidth=400Gbps];
  gpu1 -- sw0; gpu1 -- sw0
}
)");
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->name(), "my net");
  EXPECT_EQ(Cables(*topology),
            (Texts{"node-a/0--sw0 50GB/s 1us", "node-a/0--sw1 50GB/s 1us", "sw0--b/2 50GB/s 1us",
                   "sw1--b/2 50GB/s 1us", "node-a/1--sw0 50GB/s 1us"}));
  EXPECT_EQ(topology->spec().warnings, Texts{"folder/peer.txt: clusters with a label are read as hosts"});
}

TEST(Dot, DirectionsAndLabels) {
  const StatusOr<Topology> topology = ReadPeer(R"(digraph {
    gpu0 -> gpu1 [label="10GB/s", latency="1us"]
    gpu2 -> gpu1 [label="2 x 20GB/s", latency="1us", dir=back]
    gpu0 -> gpu1 [capacity=0]
    gpu1 -> gpu2 [label="30 GB/s", latency="1 us", dir=both]
  })");
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(Cables(*topology),
            (Texts{"0->1 10GB/s 1us", "1->2 20GB/s 1us", "1->2 20GB/s 1us", "1--2 30GB/s 1us"}));
}

TEST(Dot, RefusesWithThePlace) {
  struct Case {
    std::string_view text, message;
  };
  constexpr Case kCases[] = {
      {"graph {\n a -> b\n}", "folder/peer.txt:2:4: '->'; expected '--' in a graph"},
      {"digraph {\n a ->", "folder/peer.txt:2:6: the file ends; expected a node, a subgraph or an attribute"},
      {"digraph {\n a [x=", "folder/peer.txt:2:7: the file ends; expected a value"},
      {"digraph {\n \"a",
       "folder/peer.txt:2:2: a text in quotes that does not end; expected a quote behind it"},
      {"digraph {\n a; ! }", "folder/peer.txt:2:5: '!'; expected an id or a statement"},
      {"graph { a + }", "folder/peer.txt:1:13: '}'; expected a text behind '+'"},
      {"graph { a [x=\"1\" + ; ]", "folder/peer.txt:1:20: ';'; expected a text behind '+'"},
      {"digraph {}", "folder/peer.txt: a graph without nodes; expected at least one"},
      {"digraph { a -> a [bandwidth=1GB] }",
       "folder/peer.txt: edge from a to a: its ends are one node; expected two"},
      {"digraph { a -> b [bandwidth=fast] }",
       "folder/peer.txt: edge from a to b: bandwidth: 'fast': no number; a bandwidth is written like "
       "450GB/s"},
      {"graph of things", "the text is of no known format"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Refusal(c.text), c.message) << c.text;
}

// A node as the three formats name it: its host, or -1; what it is; its number.
std::string TupleOf(const TopologySpec& spec, NodeId n, std::string_view open, std::string_view quote) {
  const Node& node = spec.nodes[n.index()];
  const bool gpu = node.kind == NodeKind::kGpu;
  return fmt::format("{}{}, {}{}{}, {}{}", open, node.host ? node.host->value : -1, quote,
                     gpu ? "GPU" : "switch", quote, gpu ? node.id : node.id.substr(6),
                     open == "(" ? ")" : "]");
}

std::string WriteGraphml(const TopologySpec& spec, bool directed) {
  std::string text = fmt::format(
      "<graphml><key id='b' for='edge' attr.name='capacity'/><key id='l' for='all' attr.name='latency'/>\n"
      "<graph edgedefault='{}'>\n",
      directed ? "directed" : "undirected");
  for (size_t n = 0; n < spec.nodes.size(); ++n)
    text += fmt::format("<node id=\"{}\"/>\n", TupleOf(spec, NodeId(static_cast<int64_t>(n)), "(", "'"));
  for (size_t l = 0; l < spec.links.size(); l += directed ? 1 : 2)
    text += fmt::format(
        "<edge source=\"{}\" target=\"{}\"><data key='b'>{}</data><data key='l'>{}ns</data></edge>\n",
        TupleOf(spec, spec.links[l].from, "(", "'"), TupleOf(spec, spec.links[l].to, "(", "'"),
        spec.links[l].bandwidth_bytes_per_s / 1'000'000'000, spec.links[l].latency_ps / 1000);
  return text + "</graph></graphml>\n";
}

std::string WriteNodeLink(const TopologySpec& spec, bool directed) {
  Texts nodes, links;
  for (size_t n = 0; n < spec.nodes.size(); ++n)
    nodes.push_back(fmt::format("{{\"id\":{}}}", TupleOf(spec, NodeId(static_cast<int64_t>(n)), "[", "\"")));
  for (size_t l = 0; l < spec.links.size(); l += directed ? 1 : 2)
    links.push_back(fmt::format(R"({{"capacity":{},"latency":"{}ns","source":{},"target":{}}})",
                                spec.links[l].bandwidth_bytes_per_s / 1'000'000'000,
                                spec.links[l].latency_ps / 1000, TupleOf(spec, spec.links[l].from, "[", "\""),
                                TupleOf(spec, spec.links[l].to, "[", "\"")));
  return fmt::format(R"({{"directed":{},"nodes":[{}],"links":[{}]}})", directed, Join(nodes, ","),
                     Join(links, ","));
}

std::string WriteDot(const TopologySpec& spec, bool directed) {
  std::string text = fmt::format("{} peer {{\n", directed ? "digraph" : "graph");
  for (size_t n = 0; n < spec.nodes.size(); ++n) {
    const Node& node = spec.nodes[n];
    text += fmt::format("  n{} [kind={}, label=\"{}\"", n, NodeKindName(node.kind), node.id);
    if (node.host) text += fmt::format(", host=\"{}\"", spec.hosts[node.host->index()].name);
    text += fmt::format(", name=\"{}\"]\n", node.id);
  }
  for (size_t l = 0; l < spec.links.size(); l += directed ? 1 : 2)
    text += fmt::format("  n{} {} n{} [label=\"{}GB/s\" latency=\"{}ns\"]\n", spec.links[l].from.value,
                        directed ? "->" : "--", spec.links[l].to.value,
                        spec.links[l].bandwidth_bytes_per_s / 1'000'000'000, spec.links[l].latency_ps / 1000);
  return text + "}\n";
}

TEST(Graphs, DefaultsThatWouldFillTheMemoryAreRefused) {
  constexpr int kEnds = 200;
  const std::string label(10'000, 'x');
  std::string edges = fmt::format("graph {{ edge [tooltip={}] {{", label);
  std::string nodes = fmt::format("graph {{ node [tooltip={}] ", label);
  std::string graphml = fmt::format(
      "<graphml><key id='k' for='node' attr.name='tooltip'><default>{}</default></key><graph>", label);
  for (int i = 0; i < kEnds; ++i) edges += fmt::format("a{} ", i);
  edges += "} -- {";
  for (int i = 0; i < kEnds; ++i) edges += fmt::format("b{} ", i);
  for (int i = 0; i < kEnds * kEnds; ++i) {
    nodes += fmt::format("n{} ", i);
    graphml += fmt::format("<node id='{}'/>", i);
  }
  for (const std::string& text : {edges + "} }", nodes + "}", graphml + "</graph></graphml>"}) {
    const std::string refusal = Refusal(text);
    EXPECT_TRUE(
        refusal.ends_with(": more than 256 MiB of attributes by default; expected fewer or shorter ones"))
        << refusal.substr(0, 200);
  }
}

TEST(Graphs, ManyNodesOfOneNameAreNumberedInLinearTime) {
  constexpr int kNodes = 40'000;
  std::string text = "graph { node [name=a] ";
  for (int i = 0; i < kNodes; ++i) text += fmt::format("n{} ", i);
  const StatusOr<Topology> topology = ReadPeer(text + "}");
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->spec().nodes[0].id, "a");
  EXPECT_EQ(topology->spec().nodes[kNodes - 1].id, fmt::format("a-{}", kNodes));
}

TEST(Graphs, RandomMachinesComeBack) {
  Random random(52);
  for (int i = 0; i < 1000; ++i) {
    RandomMachine machine(random, 4);
    for (auto write : {WriteGraphml, WriteNodeLink, WriteDot}) {
      const std::string text = write(machine.spec, i % 2 == 0);
      const StatusOr<Topology> topology = ReadPeer(text);
      ASSERT_TRUE(topology.ok()) << topology.status().message() << "\n" << text;
      machine.spec.source = topology->spec().source;
      EXPECT_EQ(topology->spec(), machine.spec) << text;
      EXPECT_EQ(topology->spec().warnings, Texts()) << text;
    }
  }
}

}  // namespace
}  // namespace xccl
