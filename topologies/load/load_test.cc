// Short forms and names: their topologies, and every message.
#include "topologies/load/load.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "topologies/load/load_for_tests.h"

namespace xccl {
namespace {

struct Shape {
  const char* form;
  int ranks, hosts, nodes;
  std::vector<std::string> cables;
};

TEST(ShortForms, GiveTheseCables) {
  const std::vector<Shape> shapes = {
      {"ring:1", 1, 1, 1, {}},
      {"ring:2", 2, 1, 2, {"0--1 50GB/s 500ns"}},
      {"ring:3", 3, 1, 3, {"0--1 50GB/s 500ns", "1--2 50GB/s 500ns", "2--0 50GB/s 500ns"}},
      {"mesh:3", 3, 1, 3, {"0--1 50GB/s 500ns", "1--2 50GB/s 500ns"}},
      {"torus:2x2",
       4,
       1,
       4,
       {"0--2 50GB/s 500ns", "0--1 50GB/s 500ns", "1--3 50GB/s 500ns", "2--3 50GB/s 500ns"}},
      {"torus:1x3@bandwidth=1GB/s,2GB/s,latency=1us,2us,overhead=0ns",
       3,
       1,
       3,
       {"0--1 2GB/s 2us", "1--2 2GB/s 2us", "2--0 2GB/s 2us"}},
      {"mesh:2x2@bandwidth=1GB/s,2GB/s",
       4,
       1,
       4,
       {"0--2 1GB/s 500ns", "0--1 2GB/s 500ns", "1--3 1GB/s 500ns", "2--3 2GB/s 500ns"}},
      {"full-mesh:3@latency=1us", 3, 1, 3, {"0--1 50GB/s 1us", "0--2 50GB/s 1us", "1--2 50GB/s 1us"}},
      {"nvswitch:2", 2, 1, 3, {"0--nvswitch 450GB/s 500ns", "1--nvswitch 450GB/s 500ns"}},
      {"hypercube:0", 1, 1, 1, {}},
      {"hypercube:2",
       4,
       1,
       4,
       {"0--1 50GB/s 500ns", "0--2 50GB/s 500ns", "1--3 50GB/s 500ns", "2--3 50GB/s 500ns"}},
      {"fat-tree:k=2",
       2,
       2,
       7,
       {"h0/0--edge0 50GB/s 500ns", "h1/1--edge1 50GB/s 500ns", "edge0--aggregation0 50GB/s 500ns",
        "edge1--aggregation1 50GB/s 500ns", "aggregation0--core0 50GB/s 500ns",
        "aggregation1--core0 50GB/s 500ns"}},
      {"leaf-spine:2x1x1@uplink-bandwidth=25GB/s,uplink-latency=1us",
       2,
       2,
       5,
       {"h0/0--leaf0 50GB/s 500ns", "h1/1--leaf1 50GB/s 500ns", "leaf0--spine0 25GB/s 1us",
        "leaf1--spine0 25GB/s 1us"}},
      {"leaf-spine:1x2x4@oversubscription=2",
       4,
       4,
       7,
       {"h0/0--leaf0 50GB/s 500ns", "h1/1--leaf0 50GB/s 500ns", "h2/2--leaf0 50GB/s 500ns",
        "h3/3--leaf0 50GB/s 500ns", "leaf0--spine0 50GB/s 500ns", "leaf0--spine1 50GB/s 500ns"}},
      {"fat-tree:rails=2,hosts=2",
       4,
       2,
       7,
       {"h0/0--rail0 50GB/s 500ns", "h0/1--rail1 50GB/s 500ns", "h1/0--rail0 50GB/s 500ns",
        "h1/1--rail1 50GB/s 500ns", "rail0--spine0 50GB/s 500ns", "rail1--spine0 50GB/s 500ns"}},
      {"dragonfly:3x2x1@global-bandwidth=25GB/s,global-latency=2us",
       6,
       6,
       12,
       {"h0/0--router0 50GB/s 500ns", "h1/1--router1 50GB/s 500ns", "h2/2--router2 50GB/s 500ns",
        "h3/3--router3 50GB/s 500ns", "h4/4--router4 50GB/s 500ns", "h5/5--router5 50GB/s 500ns",
        "router0--router1 50GB/s 500ns", "router2--router3 50GB/s 500ns", "router4--router5 50GB/s 500ns",
        "router0--router3 25GB/s 2us", "router1--router4 25GB/s 2us", "router2--router5 25GB/s 2us"}},
  };
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.form);
    const StatusOr<Topology> topology = LoadTopology(shape.form);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    EXPECT_EQ(topology->name(), shape.form);
    EXPECT_EQ(topology->num_ranks(), shape.ranks);
    EXPECT_EQ(topology->num_hosts(), shape.hosts);
    EXPECT_EQ(topology->num_nodes(), shape.nodes);
    EXPECT_EQ(Cables(*topology), shape.cables);
  }
}

TEST(ShortForms, HaveTheseSizes) {
  constexpr std::tuple<const char*, int, int, int> kSizes[] = {
      {"torus:4x4x4", 64, 64, 384},
      {"mesh:8x8", 64, 64, 224},
      {"full-mesh:8", 8, 8, 56},
      {"nvswitch:8", 8, 9, 16},
      {"ring:16", 16, 16, 32},
      {"hypercube:6", 64, 64, 384},
      {"fat-tree:k=4", 16, 36, 96},
      {"leaf-spine:4x2x8", 32, 38, 80},
      {"dragonfly:5x2x2", 20, 30, 70},
      {"torus:32x32", 1024, 1024, 4096},
      {"fat-tree:rails=8,hosts=4,spines=2", 32, 42, 96},
      {"fat-tree:rails=8,hosts=4@oversubscription=2", 32, 41, 80}};
  for (const auto& [form, ranks, nodes, links] : kSizes) {
    SCOPED_TRACE(form);
    const StatusOr<Topology> topology = LoadTopology(form);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    EXPECT_EQ(topology->num_ranks(), ranks);
    EXPECT_EQ(topology->num_nodes(), nodes);
    EXPECT_EQ(topology->num_links(), links);
  }
}

// Each pair of groups has one cable, and the cables are spread over a group's routers.
TEST(ShortForms, DragonflyJoinsEveryPairOfGroupsOnce) {
  const StatusOr<Topology> topology = LoadTopology("dragonfly:9x4x2");
  ASSERT_TRUE(topology.ok());
  std::map<std::pair<int, int>, int> cables;
  std::map<int, int> of_router;
  const int gpus = topology->num_ranks();
  for (const Link& link : topology->spec().links) {
    const int from = link.from.value - gpus, to = link.to.value - gpus;
    if (from < 0 || to < 0 || from / 4 == to / 4) continue;
    ++cables[{from / 4, to / 4}];
    ++of_router[from];
  }
  EXPECT_EQ(cables.size(), 72u);
  for (const auto& [groups, count] : cables) EXPECT_EQ(count, 1) << groups.first << " " << groups.second;
  for (const auto& [router, count] : of_router) EXPECT_EQ(count, 2) << router;
}

TEST(ShortForms, ExamplesLoad) {
  for (const std::string_view example :
       {"nvswitch:8", "full-mesh:8", "ring:16", "mesh:8x8", "torus:4x4x4", "hypercube:6", "fat-tree:k=4",
        "leaf-spine:4x2x8", "dragonfly:5x2x2"})
    EXPECT_TRUE(LoadTopology(example).ok()) << example;
}

TEST(ShortForms, SwitchesTakeMulticastAndReduce) {
  const StatusOr<Topology> topology = LoadTopology("nvswitch:2@multicast=true,reduce=true");
  ASSERT_TRUE(topology.ok());
  EXPECT_TRUE(topology->node(NodeId(2)).multicast);
  EXPECT_TRUE(topology->node(NodeId(2)).reduce);
}

struct Rejection {
  const char* form;
  const char* message;
};

TEST(LoadTopology, Rejects) {
  constexpr Rejection kRejections[] = {
      {"torus:", "torus:: '': expected something like torus:4x4x4"},
      {"torus:4xa",
       "torus:4xa: torus: dims '4xa': expected whole numbers from 1 to 1000000000, such as 4x4x4"},
      {"ring:0", "ring:0: ring: ranks '0': expected a whole number from 1 to 1000000000"},
      {"fat-tree:4", "fat-tree:4: '4': expected name=value"},
      {"leaf-spine:4x2", "leaf-spine:4x2: '2': expected something like leaf-spine:4x2x8"},
      {"dragonfly:4x2x2x2", "dragonfly:4x2x2x2: '2x2': expected something like dragonfly:5x2x2"},
      {"ring:4@bandwidth", "ring:4@bandwidth: 'bandwidth': expected name=value"},
      {"ring:4@bandwidth=50",
       "ring:4@bandwidth=50: ring: bandwidth '50': no unit; a bandwidth is written like 450GB/s"},
      {"ring:4@bandwith=50GB/s",
       "ring:4@bandwith=50GB/s: ring: unknown attribute 'bandwith'; did you mean 'bandwidth'?"},
      {"ring:4@latency=1us,latency=2us",
       "ring:4@latency=1us,latency=2us: latency is given twice; expected it once"},
      {"ring:4@ranks=5", "ring:4@ranks=5: ranks is given twice; expected it once"},
      {"torus:1000000x1000000",
       "torus:1000000x1000000: torus: 1000000000000 nodes; at most 1048576 are supported"},
      {"torsu:4x4", "'torsu:4x4': no short form 'torsu'; did you mean 'torus:4x4'?"},
      {"pyramid:4",
       "'pyramid:4': no such file, and no short form 'pyramid'; short forms are nvswitch:N, full-mesh:N, "
       "ring:N, mesh:AxB, torus:AxBxC, hypercube:D, fat-tree:k=K, leaf-spine:LxSxH, dragonfly:GxRxH"},
      {"ring", "'ring': a short form without its numbers; expected ring:N, such as ring:16"},
      {"dragonfly",
       "'dragonfly': a short form without its numbers; expected dragonfly:GxRxH, such as dragonfly:5x2x2"},
      {"rnig", "'rnig': no such file, short form or library machine; did you mean ring:N, such as ring:16?"},
      {"mesh:4x4@bw=1GB/s",
       "mesh:4x4@bw=1GB/s: mesh: unknown attribute 'bw'; expected bandwidth, latency or overhead"},
      {"ring:4@bandwidth=400Gb/s",
       "ring:4@bandwidth=400Gb/s: ring: bandwidth '400Gb/s': b is bits; hint: 400Gbit/s (50GB/s)"},
      {"dgx-a10", "'dgx-a10': no such file, short form or library machine; did you mean 'dgx-a100'?"},
      {"no/such.xml", "no/such.xml: cannot read: No such file or directory"},
  };
  for (const Rejection& rejection : kRejections) {
    const StatusOr<Topology> topology = LoadTopology(rejection.form);
    ASSERT_FALSE(topology.ok()) << rejection.form;
    EXPECT_EQ(topology.status().message(), rejection.message);
    EXPECT_EQ(topology.status().code(), StatusCode::kInvalidInput);
  }
}

TEST(LoadTopology, AnUnlikeNameListsTheLibrary) {
  const StatusOr<Topology> topology = LoadTopology("a-machine-of-mine");
  ASSERT_FALSE(topology.ok());
  EXPECT_EQ(
      topology.status().message(),
      fmt::format(
          "'a-machine-of-mine': no such file, short form or library machine; short forms are nvswitch:N, "
          "full-mesh:N, ring:N, mesh:AxB, torus:AxBxC, hypercube:D, fat-tree:k=K, leaf-spine:LxSxH, "
          "dragonfly:GxRxH; library machines are {}",
          fmt::join(LibraryNames(), ", ")));
}

TEST(LoadTopology, OtherFilesAreNamed) {
  const File plan(R"({"format":1, "topology":"<topology/>"})"), counts("1,2\n"),
      algorithm("<algo name='a'/>");
  EXPECT_EQ(LoadTopology(plan.path()).status().message(),
            plan.path() + ": this is a plan; expected a topology");
  EXPECT_EQ(LoadTopology(counts.path()).status().message(),
            counts.path() + ": this is CSV; expected a topology");
  EXPECT_EQ(LoadTopology(algorithm.path()).status().message(),
            algorithm.path() + ": this is MSCCL XML; expected a topology");
}

TEST(LoadTopology, TellsFilesApartByTheirRoot) {
  const File native("<!-- <system> --><topology name='a'><gpu id='0'/></topology>");
  const StatusOr<Topology> topology = LoadTopology(native.path());
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->name(), "a");
  const File graphs("<graphs version=\"1\"/>");
  EXPECT_EQ(LoadTopology(graphs.path()).status().message(),
            graphs.path() +
                ":1:1: an NCCL graph file (<graphs>), not a topology; expected <system>; hint: "
                "NCCL_TOPO_DUMP_FILE writes one");
  const File other("<html/>");
  EXPECT_EQ(LoadTopology(other.path()).status().message(),
            other.path() + ": this is a page; expected a topology");
  const File unknown("<machine/>");
  EXPECT_EQ(LoadTopology(unknown.path()).status().message(),
            unknown.path() + ":1:1: root element <machine>; expected <topology>");
}

// The text of nvidia-smi topo -m is read whatever the file is called; XML that mentions it is XML.
TEST(LoadTopology, ReadsMatricesByTheirContents) {
  const File matrix("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-7\nGPU1\tNV12\t X \t0-7\n");
  EXPECT_EQ(
      LoadTopology(matrix.path()).status().message(),
      matrix.path() +
          ": nvidia-smi topo -m: the text does not state the architecture of its GPUs, the PCIe generation; "
          "expected flags; hint: --gpu-arch=sm90 --pcie-gen=5");
  LoadOptions options;
  options.gpu_arch = "sm80";
  options.pcie_gen = 4;
  EXPECT_EQ(Cables(LoadTopology(matrix.path(), options).value()),
            (std::vector<std::string>{"0--1 240GB/s 600ns", "0--cpu0 24GB/s 500ns", "1--cpu0 24GB/s 500ns"}));
  const File native("<!-- GPU0 X NV12 --><topology name='a'><gpu id='0'/></topology>");
  EXPECT_EQ(LoadTopology(native.path())->name(), "a");
}

TEST(LoadTopology, FlagsThatSupplyWhatTextsLeaveOut) {
  LoadOptions options;
  options.gpu_arch = "sm90";
  const Topology mesh = LoadTopology("full-mesh:4", options).value();
  EXPECT_EQ(mesh.gpu_arch(), "sm90");
  EXPECT_EQ(mesh.spec().warnings, std::vector<std::string>());
  EXPECT_EQ(LoadTopology("dgx-a100", options)->spec().warnings.back(),
            "dgx-a100: its GPUs are sm80; --gpu-arch=sm90 has no effect");
  options.gpu_arch = "bogus";
  EXPECT_EQ(LoadTopology("full-mesh:4", options).status().code(), StatusCode::kUsage);
  LoadOptions idle;
  idle.gpus_per_switch = 2;
  idle.gpu_busids = "00:11.0";
  idle.pcie_gen = 5;
  idle.nic_rate = "400Gbit/s";
  idle.link = "latency=1us";
  EXPECT_EQ(LoadTopology("full-mesh:4", idle)->spec().warnings,
            (std::vector<std::string>{
                "full-mesh:4: --gpus-per-switch has no effect; it is for dumps of NCCL and RCCL",
                "full-mesh:4: --gpu-busids has no effect; it is for dumps of NCCL and RCCL",
                "full-mesh:4: --pcie-gen has no effect; it is for the matrix of nvidia-smi topo -m",
                "full-mesh:4: --nic-rate has no effect; it is for the matrix of nvidia-smi topo -m",
                "full-mesh:4: --link has no effect; it is for topology files of other tools"}));
}

TEST(LoadTopology, FilesOfOtherToolsAreToldByTheirContent) {
  const File dot("digraph \"pair\" { gpu0 -> gpu1 [bandwidth=\"400Gbps\", dir=both] }\n");
  LoadOptions options;
  options.gpu_arch = "sm90";
  options.link = "latency=1us";
  options.degrades = {"0->1=0.5"};
  const StatusOr<Topology> topology = LoadTopology(dot.path(), options);
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(Cables(*topology), (std::vector<std::string>{"0--1 25GB/s 1us"}));
  EXPECT_EQ(topology->gpu_arch(), "sm90");
  EXPECT_EQ(topology->spec().warnings, std::vector<std::string>());
  options.link = "speed=1";
  EXPECT_EQ(LoadTopology(dot.path(), options).status().message(),
            "--link: link: unknown attribute 'speed'; expected bandwidth or latency");
  const File profile(R"({"name":"Box_1MB", "gpus_per_node":2, "nics_per_node":1, "alpha":1,
                         "node_betas_list":[20], "remote_alpha":2.6, "remote_beta":100})");
  LoadOptions hosts;
  hosts.hosts = 2;
  EXPECT_EQ(LoadTopology(profile.path(), hosts)->num_ranks(), 4);
}

TEST(LoadTopology, NamespacesAndDoctypesOfNativeXml) {
  const File native(
      "<!DOCTYPE t:topology>\n<t:topology xmlns:t='urn:t' name='a'><t:gpu id='0'/></t:topology>");
  const StatusOr<Topology> topology = LoadTopology(native.path());
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->num_ranks(), 1);
  const File log("made at 12:00\n<topology name='a'><gpu id='0'/></topology>");
  EXPECT_EQ(LoadTopology(log.path()).status().message(),
            log.path() + ":1:1: text beside <topology>; expected nothing but comments");
}

}  // namespace
}  // namespace xccl
