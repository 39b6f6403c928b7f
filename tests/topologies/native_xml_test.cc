// Tests the meaning of the native format (each document beside its expanded form), and that writing and
// reading return the same value.
#include "topologies/xml/native_xml.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "base/testing/shared_data.h"
#include "base/units.h"
#include "topologies/library/library.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

struct Expansion {
  const char* name;
  const char* xml;
  const char* expanded;
};

const Expansion kExpansions[] = {
    {"OneHostOfTheDesign", R"(<topology name="dgx-h100" source="NVIDIA H100 datasheet">
  <host name="h0">
    <gpu id="0"/><gpu id="1"/>
    <switch id="nvswitch" multicast="true" reduce="true"/>
    <link from="gpu:*" to="nvswitch" bandwidth="450GB/s" latency="500ns"/>
  </host>
</topology>)",
     R"(<topology name="dgx-h100" source="NVIDIA H100 datasheet">
  <host name="h0">
    <gpu id="0"/>
    <gpu id="1"/>
    <switch id="nvswitch" multicast="true" reduce="true"/>
  </host>
  <link from="0" to="nvswitch" bandwidth="450GB/s" latency="500ns"/>
  <link from="1" to="nvswitch" bandwidth="450GB/s" latency="500ns"/>
</topology>
)"},
    {"NoHost: one is implied, and is not written", R"(<topology name="t"><gpu count="2"/>
  <link from="0" to="1" bandwidth="2GiB/s" overhead="1us" duplex="false"/></topology>)",
     R"(<topology name="t">
  <gpu id="0"/>
  <gpu id="1"/>
  <link from="0" to="1" bandwidth="2GiB/s" latency="0ns" overhead="1us" duplex="false"/>
</topology>
)"},
    {"NoName: the file's", R"(<topology><gpu id="0"/></topology>)", R"(<topology name="t">
  <gpu id="0"/>
</topology>
)"},
    {"TheGpusArchitecture", R"(<topology name="t" source="a" arch="gfx90a"><gpu id="0"/></topology>)",
     R"(<topology name="t" arch="gfx90a" source="a">
  <gpu id="0"/>
</topology>
)"},
    {"SourcesOfElementsJoinTheTopologys",
     R"(<topology name="t" source="a"><gpu count="2"/><link from="0" to="1" bandwidth="1GB/s" source="b"/>
  <link from="0" to="1" bandwidth="1GB/s" source="b"/></topology>)",
     R"(<topology name="t" source="a; b">
  <gpu id="0"/>
  <gpu id="1"/>
  <link from="0" to="1" bandwidth="1GB/s" latency="0ns"/>
  <link from="0" to="1" bandwidth="1GB/s" latency="0ns"/>
</topology>
)"},
    {"LinksBeforeTheirNodes: families and link elements keep the order of the document",
     R"(<topology name="t"><link from="0" to="2" bandwidth="1GB/s"/><ring ranks="2" latency="1us"/>
  <link from="1" to="2" bandwidth="1GB/s"/><gpu id="2"/></topology>)",
     R"(<topology name="t">
  <gpu id="0"/>
  <gpu id="1"/>
  <gpu id="2"/>
  <link from="0" to="2" bandwidth="1GB/s" latency="0ns"/>
  <link from="0" to="1" bandwidth="50GB/s" latency="1us"/>
  <link from="1" to="2" bandwidth="1GB/s" latency="0ns"/>
</topology>
)"},
    {"Wildcards: all pairs once, ranges, lists, prefixes",
     R"(<topology name="t"><gpu count="3"/><switch id="leaf" count="2"/><nic count="2"/>
  <link from="gpu:*" to="gpu:*" bandwidth="1GB/s"/>
  <link from="gpu:1..2" to="leaf*" bandwidth="2GB/s"/>
  <link from="leaf0,leaf1" to="nic:*" pairwise="true" bandwidth="3GB/s" count="2"/></topology>)",
     R"(<topology name="t">
  <gpu id="0"/>
  <gpu id="1"/>
  <gpu id="2"/>
  <switch id="leaf0"/>
  <switch id="leaf1"/>
  <nic id="nic0"/>
  <nic id="nic1"/>
  <link from="0" to="1" bandwidth="1GB/s" latency="0ns"/>
  <link from="0" to="2" bandwidth="1GB/s" latency="0ns"/>
  <link from="1" to="2" bandwidth="1GB/s" latency="0ns"/>
  <link from="1" to="leaf0" bandwidth="2GB/s" latency="0ns"/>
  <link from="1" to="leaf1" bandwidth="2GB/s" latency="0ns"/>
  <link from="2" to="leaf0" bandwidth="2GB/s" latency="0ns"/>
  <link from="2" to="leaf1" bandwidth="2GB/s" latency="0ns"/>
  <link from="leaf0" to="nic0" bandwidth="3GB/s" latency="0ns"/>
  <link from="leaf0" to="nic0" bandwidth="3GB/s" latency="0ns"/>
  <link from="leaf1" to="nic1" bandwidth="3GB/s" latency="0ns"/>
  <link from="leaf1" to="nic1" bandwidth="3GB/s" latency="0ns"/>
</topology>
)"},
    {"AllOrderedPairsWhereNotDuplex",
     R"(<topology name="t"><gpu count="2"/><link from="gpu:*" to="gpu:*" duplex="false" bandwidth="1GB/s"/></topology>)",
     R"(<topology name="t">
  <gpu id="0"/>
  <gpu id="1"/>
  <link from="0" to="1" bandwidth="1GB/s" latency="0ns"/>
</topology>
)"},
    {"SameIdsOnTwoHosts: a reference means its own host first, then what is without host",
     R"(<topology name="t">
  <host name="a"><gpu id="0"/><switch id="s"/><link from="0" to="s" bandwidth="1GB/s"/>
    <link from="0" to="top" bandwidth="2GB/s"/></host>
  <host name="b"><gpu id="0"/><switch id="s"/><link from="0" to="s" bandwidth="3GB/s"/></host>
  <switch id="top"/>
  <link from="*/switch:s" to="top" bandwidth="4GB/s"/>
</topology>)",
     R"(<topology name="t">
  <host name="a">
    <gpu id="0"/>
    <switch id="s"/>
  </host>
  <host name="b">
    <gpu id="0"/>
    <switch id="s"/>
  </host>
  <switch id="top"/>
  <link from="a/gpu:0" to="a/switch:s" bandwidth="1GB/s" latency="0ns"/>
  <link from="a/gpu:0" to="top" bandwidth="2GB/s" latency="0ns"/>
  <link from="b/gpu:0" to="b/switch:s" bandwidth="3GB/s" latency="0ns"/>
  <link from="a/switch:s" to="top" bandwidth="4GB/s" latency="0ns"/>
  <link from="b/switch:s" to="top" bandwidth="4GB/s" latency="0ns"/>
</topology>
)"},
    {"FamiliesInOneHost: gpus are numbered on",
     R"(<topology name="t"><host name="h0"><ring ranks="2"/><nvswitch gpus="1" id="s" reduce="true"/>
  <link from="1" to="2" bandwidth="1GB/s"/></host></topology>)",
     R"(<topology name="t">
  <host name="h0">
    <gpu id="0"/>
    <gpu id="1"/>
    <gpu id="2"/>
    <switch id="s" reduce="true"/>
  </host>
  <link from="0" to="1" bandwidth="50GB/s" latency="500ns"/>
  <link from="2" to="s" bandwidth="450GB/s" latency="500ns"/>
  <link from="1" to="2" bandwidth="1GB/s" latency="0ns"/>
</topology>
)"},
    {"ClusterWithRails", R"(<topology name="t">
  <cluster hosts="2">
    <gpu count="2"/>
    <nic count="2"/>
    <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="25GB/s"/>
    <fabric type="rails" bandwidth="25GB/s" latency="1us" spines="1" oversubscription="2"/>
  </cluster>
</topology>)",
     R"(<topology name="t">
  <host name="h0">
    <gpu id="0"/>
    <gpu id="1"/>
    <nic id="nic0"/>
    <nic id="nic1"/>
  </host>
  <host name="h1">
    <gpu id="0"/>
    <gpu id="1"/>
    <nic id="nic0"/>
    <nic id="nic1"/>
  </host>
  <switch id="rail0"/>
  <switch id="rail1"/>
  <switch id="spine0"/>
  <link from="h0/gpu:0" to="h0/nic:nic0" bandwidth="25GB/s" latency="0ns"/>
  <link from="h0/gpu:1" to="h0/nic:nic1" bandwidth="25GB/s" latency="0ns"/>
  <link from="h1/gpu:0" to="h1/nic:nic0" bandwidth="25GB/s" latency="0ns"/>
  <link from="h1/gpu:1" to="h1/nic:nic1" bandwidth="25GB/s" latency="0ns"/>
  <link from="h0/nic:nic0" to="rail0" bandwidth="25GB/s" latency="1us"/>
  <link from="h0/nic:nic1" to="rail1" bandwidth="25GB/s" latency="1us"/>
  <link from="h1/nic:nic0" to="rail0" bandwidth="25GB/s" latency="1us"/>
  <link from="h1/nic:nic1" to="rail1" bandwidth="25GB/s" latency="1us"/>
  <link from="rail0" to="spine0" bandwidth="25GB/s" latency="1us"/>
  <link from="rail1" to="spine0" bandwidth="25GB/s" latency="1us"/>
</topology>
)"},
    {"ClusterOfGpusAlone: the fabric takes the GPUs; the host's name is the stem", R"(<topology name="t">
  <cluster hosts="2"><host name="box"><gpu id="0"/></host><fabric id="ib" reduce="true" latency="1us"/></cluster>
</topology>)",
     R"(<topology name="t">
  <host name="box0">
    <gpu id="0"/>
  </host>
  <host name="box1">
    <gpu id="0"/>
  </host>
  <switch id="ib" reduce="true"/>
  <link from="box0/gpu:0" to="ib" bandwidth="50GB/s" latency="1us"/>
  <link from="box1/gpu:0" to="ib" bandwidth="50GB/s" latency="1us"/>
</topology>
)"},
    {"ClustersInACluster: pods, whose topmost switches meet in the outer fabric", R"(<topology name="t">
  <cluster hosts="2">
    <cluster hosts="2" name="n"><gpu id="0"/><fabric id="leaf"/></cluster>
    <link from="n0/gpu:0" to="leaf" bandwidth="1GB/s"/>
    <fabric id="core"/>
  </cluster>
</topology>)",
     R"(<topology name="t">
  <host name="pod0.n0">
    <gpu id="0"/>
  </host>
  <host name="pod0.n1">
    <gpu id="0"/>
  </host>
  <switch id="pod0.leaf"/>
  <host name="pod1.n0">
    <gpu id="0"/>
  </host>
  <host name="pod1.n1">
    <gpu id="0"/>
  </host>
  <switch id="pod1.leaf"/>
  <switch id="core"/>
  <link from="pod0.n0/gpu:0" to="pod0.leaf" bandwidth="50GB/s" latency="500ns"/>
  <link from="pod0.n1/gpu:0" to="pod0.leaf" bandwidth="50GB/s" latency="500ns"/>
  <link from="pod0.n0/gpu:0" to="pod0.leaf" bandwidth="1GB/s" latency="0ns"/>
  <link from="pod1.n0/gpu:0" to="pod1.leaf" bandwidth="50GB/s" latency="500ns"/>
  <link from="pod1.n1/gpu:0" to="pod1.leaf" bandwidth="50GB/s" latency="500ns"/>
  <link from="pod1.n0/gpu:0" to="pod1.leaf" bandwidth="1GB/s" latency="0ns"/>
  <link from="pod0.leaf" to="core" bandwidth="50GB/s" latency="500ns"/>
  <link from="pod1.leaf" to="core" bandwidth="50GB/s" latency="500ns"/>
</topology>
)"},
    {"ClusterOfTwoHosts: each copy is a pod with both", R"(<topology name="t">
  <cluster hosts="2" name="r">
    <host name="a"><gpu id="0"/></host>
    <host name="b"><gpu id="0"/></host>
    <switch id="s"/>
    <link from="gpu:*" to="s" bandwidth="1GB/s"/>
    <link from="a/0" to="b/0" bandwidth="2GB/s"/>
    <fabric attach="s"/>
  </cluster>
</topology>)",
     R"(<topology name="t">
  <host name="r0.a">
    <gpu id="0"/>
  </host>
  <host name="r0.b">
    <gpu id="0"/>
  </host>
  <switch id="r0.s"/>
  <host name="r1.a">
    <gpu id="0"/>
  </host>
  <host name="r1.b">
    <gpu id="0"/>
  </host>
  <switch id="r1.s"/>
  <switch id="fabric"/>
  <link from="r0.a/gpu:0" to="r0.s" bandwidth="1GB/s" latency="0ns"/>
  <link from="r0.b/gpu:0" to="r0.s" bandwidth="1GB/s" latency="0ns"/>
  <link from="r0.a/gpu:0" to="r0.b/gpu:0" bandwidth="2GB/s" latency="0ns"/>
  <link from="r1.a/gpu:0" to="r1.s" bandwidth="1GB/s" latency="0ns"/>
  <link from="r1.b/gpu:0" to="r1.s" bandwidth="1GB/s" latency="0ns"/>
  <link from="r1.a/gpu:0" to="r1.b/gpu:0" bandwidth="2GB/s" latency="0ns"/>
  <link from="r0.s" to="fabric" bandwidth="50GB/s" latency="500ns"/>
  <link from="r1.s" to="fabric" bandwidth="50GB/s" latency="500ns"/>
</topology>
)"},
    {"FabricOfHostsThatDiffer", R"(<topology name="t">
  <host name="big"><gpu count="2"/><nic id="n"/></host>
  <host name="small"><gpu id="0"/><nic id="n"/></host>
  <fabric bandwidth="100Gbit/s" latency="1us" prefix="ib-"/>
</topology>)",
     R"(<topology name="t">
  <host name="big">
    <gpu id="0"/>
    <gpu id="1"/>
    <nic id="n"/>
  </host>
  <host name="small">
    <gpu id="0"/>
    <nic id="n"/>
  </host>
  <switch id="ib-fabric"/>
  <link from="big/nic:n" to="ib-fabric" bandwidth="12.5GB/s" latency="1us"/>
  <link from="small/nic:n" to="ib-fabric" bandwidth="12.5GB/s" latency="1us"/>
</topology>
)"},
    {"AByteOrderMarkIsSkipped", "\xEF\xBB\xBF<topology name=\"caf\xC3\xA9\"><gpu id=\"0\"/></topology>",
     "<topology name=\"caf\xC3\xA9\">\n  <gpu id=\"0\"/>\n</topology>\n"},
    {"ADoctypeIsSkippedAndItsEntitiesAreNotExpanded",
     R"(<!DOCTYPE topology [<!ENTITY a "bbbbbbbbbb"> <!ENTITY c "&a;&a;">]>
<!-- a comment --><topology name="&c;&lt;"><gpu id="0"/><!-- another --></topology>)",
     R"(<topology name="&amp;c;&lt;">
  <gpu id="0"/>
</topology>
)"},
};

TEST(NativeXml, Expands) {
  for (const Expansion& expansion : kExpansions) {
    SCOPED_TRACE(expansion.name);
    const StatusOr<Topology> read = ReadNativeXml(expansion.xml, "dir/t.xml");
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(WriteNativeXml(*read), expansion.expanded);
  }
}

void ExpectRoundTrip(const Topology& topology) {
  const std::string written = WriteNativeXml(topology);
  const StatusOr<Topology> read = ReadNativeXml(written, "written.xml");
  ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << written.substr(0, 4000);
  EXPECT_TRUE(*read == topology) << written.substr(0, 4000);
  EXPECT_EQ(WriteNativeXml(*read), written);
}

TEST(NativeXml, EveryLibraryMachineReadsBackTheSame) {
  constexpr int64_t kMostNodes = 20'000;  // larger machines are tens of megabytes of XML
  for (const std::string& name : LibraryNamesUpTo(kMostNodes)) {
    SCOPED_TRACE(name);
    const StatusOr<Topology> topology = LoadTopology(name);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    ExpectRoundTrip(*topology);
  }
}

TEST(NativeXml, EveryFamilyReadsBackTheSame) {
  for (const char* form :
       {"nvswitch:1", "nvswitch:8@multicast=true,reduce=true", "full-mesh:1", "full-mesh:7", "ring:1",
        "ring:2", "ring:16", "mesh:1", "mesh:3x5", "torus:2x1x3", "torus:4x4x4@bandwidth=1GB/s,2GB/s,3GB/s",
        "hypercube:0", "hypercube:5", "fat-tree:k=2", "fat-tree:k=4@oversubscription=3:2",
        "fat-tree:rails=4,hosts=3,spines=2", "leaf-spine:4x2x8@uplink-bandwidth=100GB/s", "dragonfly:1x1x1",
        "dragonfly:9x4x2"}) {
    SCOPED_TRACE(form);
    const StatusOr<Topology> topology = LoadTopology(form);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    ExpectRoundTrip(*topology);
  }
}

// Hosts in any order and in pieces, nodes without hosts, links of every kind. Some ids are shared, look
// like references or need escaping.
TopologySpec RandomSpec(Random& random) {
  constexpr const char* kNames[] = {"0",   "1",    "7",   "gpu:0",        "nic:x",
                                    "a&b", "it's", "x.y", "0000:07:00.0", "-"};
  const auto name = [&] { return std::string(kNames[random.Below(std::size(kNames))]); };
  TopologySpec spec;
  spec.name = "random \"<&>\n\t\"";
  if (random.Below(2) == 0) spec.source = "a 'b' \"c\" & <d>";
  const auto hosts = static_cast<int64_t>(random.Below(4));
  if (hosts == 1 && random.Below(2) == 0) {
    spec.hosts.push_back(Host{"host"});
  } else {
    for (int64_t h = 0; h < hosts; ++h) spec.hosts.push_back(Host{fmt::format("h{}", hosts - h)});
  }
  const auto nodes = static_cast<int64_t>(1 + random.Below(12));
  for (int64_t n = 0; n < nodes; ++n) {
    Node node;
    node.kind = n == 0 ? NodeKind::kGpu : static_cast<NodeKind>(random.Below(4));
    node.id = random.Below(2) == 0 ? name() : std::to_string(n);
    if (hosts > 0 && (node.kind == NodeKind::kGpu || random.Below(2) == 0))
      node.host = HostId(static_cast<int64_t>(random.Below(hosts)));
    if (node.kind == NodeKind::kSwitch) node.multicast = random.Below(2) == 0;
    if (node.kind == NodeKind::kSwitch) node.reduce = random.Below(2) == 0;
    spec.nodes.push_back(node);
  }
  for (uint64_t l = 0; nodes > 1 && l < random.Below(20); ++l) {
    Link link;
    link.from = NodeId(static_cast<int64_t>(random.Below(nodes)));
    link.to = NodeId(static_cast<int64_t>((link.from.value + 1 + random.Below(nodes - 1)) % nodes));
    link.bandwidth_bytes_per_s = static_cast<int64_t>(1 + (random.Next() >> (15 + random.Below(46))));
    link.latency_ps = static_cast<int64_t>(random.Next() >> (25 + random.Below(39)));
    if (random.Below(3) == 0) link.overhead_ps = static_cast<int64_t>(random.Below(kMaxLatencyPs));
    for (uint64_t copy = 0; copy < 1 + random.Below(3); ++copy) {
      spec.links.push_back(link);
      if (random.Below(2) == 0) std::swap(link.from, link.to);
    }
  }
  return spec;
}

TEST(NativeXml, RandomTopologiesReadBackTheSame) {
  Random random(20);
  int valid = 0;
  for (int i = 0; i < 1500; ++i) {
    const StatusOr<Topology> topology = Topology::Create(RandomSpec(random));
    if (!topology.ok()) continue;  // some ids collide
    ++valid;
    SCOPED_TRACE(i);
    ExpectRoundTrip(*topology);
    if (HasFailure()) return;
  }
  EXPECT_GT(valid, 500);
}

TEST(NativeXml, ReadsItsOwnFormOfFortyThousandRanks) {
  const StatusOr<Topology> topology = LoadTopology("torus:200x200");
  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(topology->num_ranks(), 40'000);
  const StatusOr<Topology> read = ReadNativeXml(WriteNativeXml(*topology), "written.xml");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(*read == *topology);
}

// Any file gives a value, or a message with a place in it.
TEST(NativeXml, MutatedFilesGiveAValueOrAPlacedMessage) {
  Random random(21);
  std::vector<std::string> files;
  for (const LibraryFile& file : LibraryFiles())
    if (file.text.size() < 2000) files.emplace_back(file.text);
  for (const Expansion& expansion : kExpansions) files.emplace_back(expansion.xml);
  ASSERT_GT(files.size(), 20u);
  constexpr std::string_view kBytes = "<>/\"'=&;!-[]*:,. 0129xgpu\n\t";
  for (int i = 0; i < 5000; ++i) {
    std::string text = files[random.Below(files.size())];
    for (uint64_t change = 0; !text.empty() && change <= random.Below(4); ++change) {
      const size_t at = random.Below(text.size());
      switch (random.Below(5)) {
        case 0:
          text[at] = static_cast<char>(random.Next());
          break;
        case 1:
          text[at] = kBytes[random.Below(kBytes.size())];
          break;
        case 2:
          text.erase(at, 1 + random.Below(20));
          break;
        case 3:
          text.insert(at, text.substr(random.Below(text.size()), 1 + random.Below(40)));
          break;
        default:
          text.resize(at + 1);
      }
    }
    // Joined digits make large machines, which have tests of their own.
    if (text.find("hosts=\"") != std::string::npos && text.find("hosts=\"2\"") == std::string::npos) continue;
    const StatusOr<Topology> read = ReadNativeXml(text, "m.xml");
    if (read.ok()) {
      if (read->num_nodes() < 1000) ExpectRoundTrip(*read);
    } else {
      EXPECT_TRUE(read.status().message().starts_with("m.xml:")) << read.status().message();
      EXPECT_EQ(read.status().code(), StatusCode::kInvalidInput);
    }
    if (HasFailure()) return;
  }
}

// The library's machines have the links of the published graphs at datasheet bandwidths, GB for GiB.
TEST(NativeXml, LibraryHasTheLinksOfThePublishedGraphs) {
  if (!SharedData("data/graphs")) GTEST_SKIP() << SharedDataMissing("data/graphs");
  for (const auto& [name, graph] : {std::pair("dgx1", "dgx1"), std::pair("mi250x", "mi250x1")}) {
    const StatusOr<Topology> machine = LoadTopology(name);
    const StatusOr<Topology> published = LoadTopology(*SharedData(fmt::format("data/graphs/{}.xml", graph)));
    ASSERT_TRUE(machine.ok() && published.ok());
    using Edge = std::tuple<int32_t, int32_t, int64_t>;
    std::vector<Edge> ours, theirs;
    for (const Link& link : machine->spec().links)
      ours.emplace_back(link.from.value, link.to.value, link.bandwidth_bytes_per_s / 1'000'000'000);
    for (const Link& link : published->spec().links)
      theirs.emplace_back(link.from.value, link.to.value, link.bandwidth_bytes_per_s >> 30);
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
    EXPECT_EQ(ours, theirs) << name;
  }
}

TEST(NativeXml, ReadsThePublishedGraphs) {
  constexpr std::tuple<const char*, int, int> kGraphs[] = {
      {"2xtorus4x4_slow4", 32, 136}, {"a100x2", 16, 96},
      {"a100x4", 32, 192},           {"dgx1", 8, 32},
      {"hmesh5x5_50_75", 25, 80},    {"mi250x1", 16, 56},
      {"mi250x2", 32, 176},          {"mi250x4", 64, 352},
      {"teccl_dgx2_2", 32, 80},      {"teccl_ndv2_4", 32, 136},
      {"torus8x8_5failed", 64, 246}};
  if (!SharedData("data/graphs")) GTEST_SKIP() << SharedDataMissing("data/graphs");
  for (const auto& [name, ranks, links] : kGraphs) {
    SCOPED_TRACE(name);
    const std::optional<std::string> path = SharedData(fmt::format("data/graphs/{}.xml", name));
    ASSERT_TRUE(path);
    const StatusOr<Topology> topology = LoadTopology(*path);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    EXPECT_EQ(topology->num_ranks(), ranks);
    EXPECT_EQ(topology->num_links(), links);
    ExpectRoundTrip(*topology);
  }
}

}  // namespace
}  // namespace xccl
