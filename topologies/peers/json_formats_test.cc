#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

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

constexpr std::string_view kProfile =
    R"({"name":"Box_1MB", "gpus_per_node":2, "nics_per_node":1, "alpha":0.5, "node_betas_list":[20],
        "node_invbws_list":[20.5], "remote_alpha":2.6, "remote_beta":100, "remote_invbw":102.6})";

TEST(Taccl, OneSwitchAndNics) {
  EXPECT_EQ(Cables(ReadPeer(kProfile).value()),
            (Texts{"0--nvswitch 50GB/s 250ns", "1--nvswitch 50GB/s 250ns"}));
  LoadOptions hosts;
  hosts.hosts = 2;
  const StatusOr<Topology> topology = ReadPeer(kProfile, hosts);
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->name(), "Box_1MB");
  EXPECT_EQ(Cables(*topology), (Texts{"0--nvswitch 50GB/s 250ns", "1--nvswitch 50GB/s 250ns",
                                      "0--nic0 10GB/s 0ns", "1--nic0 10GB/s 0ns"}));
  EXPECT_EQ(
      topology->spec().warnings,
      (Texts{"folder/peer.txt: the wiring of Box_1MB is not in the file; one switch joins its GPUs, as in "
             "TACCL's HubAndSpoke",
             "folder/peer.txt: how the NICs are joined to GPUs is not in the file; each has 2 neighbouring "
             "GPUs"}));
}

TEST(Taccl, KnownWiringByName) {
  const std::string ndv2 =
      R"({"name":"NDv2_1MB", "gpus_per_node":8, "alpha":0.5, "node_betas_list":[20, 40], "remote_alpha":-1})";
  const StatusOr<Topology> topology = ReadPeer(ndv2);
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->gpu_arch(), "sm70");
  EXPECT_EQ(topology->num_links(), 32);
  EXPECT_EQ(Cables(*topology)[0], "0--1 50GB/s 500ns");
  EXPECT_EQ(Cables(*topology)[1], "0--2 25GB/s 500ns");
  for (int32_t g = 0; g < 8; ++g) {  // two links of two NVLinks, and two of one
    int64_t out = 0;
    for (const LinkId l : topology->Out(NodeId(g))) out += topology->link(l).bandwidth_bytes_per_s;
    EXPECT_EQ(out, 150'000'000'000);
  }
}

// The times of a profile of 32 KB are those of one chunk, times a factor that only its writer knows.
TEST(Taccl, AsksForTheFactorOfOtherSizes) {
  const std::string small =
      R"({"name":"DGX2_32KB", "gpus_per_node":16, "alpha":6, "node_betas_list":[6.4], "nics_per_node":8,
          "remote_alpha":20, "remote_beta":64})";
  EXPECT_EQ(
      Refusal(small),
      "folder/peer.txt: a profile of another size than 1MB (DGX2_32KB), whose times have a factor that the "
      "file does not state; expected the bandwidth of its fastest links; hint: --link bandwidth=45GB/s");
  LoadOptions options = Link("bandwidth=100GB/s");
  options.hosts = 2;
  const StatusOr<Topology> topology = ReadPeer(small, options);
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  const Texts cables = Cables(*topology);
  EXPECT_EQ(cables.front(), "0--nvswitch 100GB/s 150ns");  // the factor is 20
  EXPECT_EQ(cables.back(), "15--nic7 10GB/s 0ns");
  EXPECT_EQ(
      topology->spec().warnings[0],
      "folder/peer.txt: remote_alpha is 1us, but --hosts gives a path between hosts 2.6us; hint: --fabric "
      "latency=0.5us");
}

TEST(Taccl, RandomMatricesComeBack) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto n = static_cast<int64_t>(1 + random.Below(8));
    TopologySpec spec;
    spec.name = "Mine_1MB";
    spec.hosts = {Host{"h0"}};
    for (int64_t g = 0; g < n; ++g) AddNode(NodeKind::kGpu, std::to_string(g), HostId(0), spec);
    std::vector<std::string> links, betas;
    for (int64_t to = 0; to < n; ++to) {
      Texts counts, times;
      for (int64_t from = 0; from < n; ++from) {
        const uint64_t count = to == from ? 0 : random.Below(4);
        const auto rate = static_cast<int64_t>(1 + random.Below(900)) * 1'000'000'000;
        for (uint64_t l = 0; l < count; ++l) AddLink(NodeId(from), NodeId(to), {rate, 700'000}, spec);
        counts.push_back(std::to_string(count));
        times.push_back(count == 0 ? "0" : fmt::format("{}", 1e12 / static_cast<double>(rate)));
      }
      links.push_back("[" + Join(counts, ",") + "]");
      betas.push_back("[" + Join(times, ",") + "]");
    }
    const std::string text = fmt::format(
        R"({{"name":"Mine_1MB","gpus_per_node":{},"alpha":0.7,"links":[{}],"betas":[{}],"invbws":[]}})", n,
        Join(links, ","), Join(betas, ","));
    const StatusOr<Topology> topology = ReadPeer(text);
    ASSERT_TRUE(topology.ok()) << topology.status().message() << "\n" << text;
    spec.source = topology->spec().source;
    EXPECT_EQ(topology->spec(), spec) << text;
  }
}

TEST(Taccl, Refuses) {
  struct Case {
    std::string_view text, message;
  };
  constexpr Case kCases[] = {
      {R"({"name":"a_1MB","gpus_per_node":2,"alpha":1,"node_betas_list":[1,2]})",
       "folder/peer.txt: a_1MB has 2 betas and no `links`; expected NDv2, DGX2, or one beta"},
      {R"({"name":"a_1MB","gpus_per_node":2,"alpha":1,"node_betas_list":[0]})",
       "folder/peer.txt: a beta of 0 or less; expected more"},
      {R"({"name":"ndv2","gpus_per_node":4,"alpha":1,"node_betas_list":[1,2]})",
       "folder/peer.txt: NDv2 has 8 GPUs and 2 betas; this has 4 and 2"},
      {R"({"name":"a_1MB","gpus_per_node":2,"alpha":1,"links":[[0,1]],"betas":[[1]]})",
       "folder/peer.txt: links: 1 rows; expected 2"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Refusal(c.text), c.message) << c.text;
}

std::string Teccl(std::string_view name, int64_t chassis, std::string_view more = "") {
  return fmt::format(
      R"({{"TopologyParams":{{"name":"{}","chassis":{},"chunk_size":0.25{}}},"GurobiParams":{{}}}})", name,
      chassis, more);
}

int64_t TotalGbPerS(const Topology& topology) {
  int64_t sum = 0;
  for (const xccl::Link& link : topology.spec().links) sum += link.bandwidth_bytes_per_s;
  return sum / 1'000'000'000;
}

// Sums of the capacities in TE-CCL's matrices, without AMD's wrong indices.
TEST(Teccl, KnownMachines) {
  struct Case {
    std::string_view name;
    int64_t chassis;
    int32_t ranks, hosts;
    int64_t gb_per_s;
  };
  constexpr Case kCases[] = {
      {"DGX1", 1, 8, 1, 1200},  {"NDv2", 1, 8, 1, 1200}, {"NDv2", 2, 16, 2, 2425},  {"NDv2", 4, 32, 4, 4900},
      {"DGX2", 2, 32, 2, 8200}, {"AMD", 1, 16, 1, 5600}, {"AMD", 2, 32, 2, 13'600}, {"Mesh", 1, 16, 1, 5400},
  };
  for (const Case& c : kCases) {
    const StatusOr<Topology> topology = ReadPeer(Teccl(c.name, c.chassis));
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    EXPECT_EQ(topology->num_ranks(), c.ranks) << c.name;
    EXPECT_EQ(topology->num_hosts(), c.hosts) << c.name;
    EXPECT_EQ(TotalGbPerS(*topology), c.gb_per_s) << c.name << c.chassis;
  }
}

TEST(Teccl, AlphasAreInSeconds) {
  const Topology amd = ReadPeer(Teccl("AMD", 2, R"(,"alpha":[7e-7,1.3e-6])")).value();
  EXPECT_EQ(Cables(amd).front(), "h0/0--h0/1 200GB/s 700ns");
  EXPECT_EQ(Cables(amd).back(), "h1/switch7--fabric 25GB/s 1.3us");
  const Topology mesh = ReadPeer(Teccl("Mesh", 1, R"(,"side_length":2)")).value();
  EXPECT_EQ(Cables(mesh), (Texts{"0--1 100GB/s 0ns", "0--2 100GB/s 0ns", "1--2 100GB/s 0ns",
                                 "1--3 100GB/s 0ns", "2--3 100GB/s 0ns"}));
  EXPECT_EQ(
      mesh.spec().warnings,
      Texts{"folder/peer.txt: Mesh: as in mesh.py, a cable joins the end of each row to the start of the "
            "next one"});
}

TEST(Teccl, RandomParameters) {
  Random random(2);
  for (int i = 0; i < 1000; ++i) {
    const auto chassis = static_cast<int64_t>(1 + random.Below(6));
    const auto side = static_cast<int64_t>(2 + random.Below(8));
    const uint64_t ns = random.Below(2000);
    const std::string more = fmt::format(R"(,"side_length":{},"alpha":[{}e-9,{}e-9])", side, ns, 2 * ns);
    const Topology amd = ReadPeer(Teccl("AMD", chassis, more)).value();
    EXPECT_EQ(amd.num_ranks(), 16 * chassis);
    EXPECT_EQ(TotalGbPerS(amd), 5600 * chassis + (chassis == 1 ? 0 : 24 * 50 * chassis));
    for (const xccl::Link& link : amd.spec().links)
      EXPECT_EQ(link.latency_ps,
                static_cast<int64_t>(link.bandwidth_bytes_per_s == 25'000'000'000 ? 2 * ns : ns) * 1000);
    const Topology mesh = ReadPeer(Teccl("Mesh", 1, more)).value();
    EXPECT_EQ(mesh.num_ranks(), side * side);
    EXPECT_EQ(mesh.num_links(), 2 * (side * side - 1) + 2 * (side * side - side));
    const Topology ndv2 = ReadPeer(Teccl("NDv2", chassis, more)).value();
    EXPECT_EQ(ndv2.num_ranks(), 8 * chassis);
    EXPECT_EQ(ndv2.num_links(), 32 * chassis + (chassis == 1 ? 0 : chassis == 2 ? 2 : 2 * chassis));
  }
}

TEST(Teccl, NamesTheKnownMachines) {
  EXPECT_EQ(
      Refusal(Teccl("ndv2", 1)),
      "folder/peer.txt: TopologyParams: no topology ndv2, whose matrix is not in the file; TE-CCL has AMD, "
      "DGX1, DGX2, Mesh, NDv2; did you mean 'NDv2'?");
}

TEST(Sccl, LinksInUnitsOfTheFlag) {
  constexpr std::string_view kLine =
      R"({"msccl_type":"topology","name":"line","switches":[],"links":[[0,2,0],[2,0,1],[0,1,0]]})";
  EXPECT_EQ(
      Refusal(kLine),
      "folder/peer.txt: the file counts chunks a step and has no rates; expected the bandwidth that a count "
      "of 1 stands for; hint: --link bandwidth=25GB/s");
  const Topology line = ReadPeer(kLine, Link("bandwidth=25GB/s,latency=700ns")).value();
  EXPECT_EQ(line.num_ranks(), 3);
  EXPECT_EQ(Cables(line), (Texts{"1--0 50GB/s 700ns", "2--1 25GB/s 700ns"}));
  EXPECT_EQ(line.spec().warnings, Texts());
}

TEST(Sccl, PortsOfOneSwitch) {
  const std::string hub =
      R"({"msccl_type":"topology","name":"hub","links":[[0,1,1],[1,0,1],[1,1,0]],"switches":[
          [[0],[1,2],1,"a"],[[1,2],[0],1,"b"],[[1],[0,2],1,"c"],[[0,2],[1],1,"d"],[[2],[0,1],1,"e"],[[0,1],[2],1,"f"]]})";
  const StatusOr<Topology> topology = ReadPeer(hub, Link("bandwidth=10GB/s,latency=1us"));
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(Cables(*topology),
            (Texts{"0--switch0 10GB/s 500ns", "1--switch0 10GB/s 500ns", "2--switch0 10GB/s 500ns"}));
  const std::string star =
      R"({"msccl_type":"topology","name":"star","links":[[0,1,1],[1,0,0],[1,0,0]],"switches":[[[0],[1,2],1,"a"],[[1,2],[0],1,"b"]]})";
  EXPECT_EQ(Refusal(star, Link("bandwidth=10GB/s")).substr(0, 60),
            "folder/peer.txt: switches: a limit for links that are not al");
}

TEST(Sccl, RefusesLimitsOfOneDirection) {
  EXPECT_EQ(Refusal(R"({"msccl_type":"topology","name":"x","links":[[0,1,1],[1,0,1],[1,1,0]],
    "switches":[[[0],[1,2],1,"out"]]})",
                    Link("bandwidth=25GB/s")),
            "folder/peer.txt: switches: limits that differ between sending and receiving");
}

TEST(Sccl, RandomMatricesComeBack) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const auto n = static_cast<int64_t>(1 + random.Below(9));
    TopologySpec spec;
    spec.name = "mine";
    for (int64_t g = 0; g < n; ++g) AddNode(NodeKind::kGpu, std::to_string(g), std::nullopt, spec);
    Texts rows;
    for (int64_t to = 0; to < n; ++to) {
      Texts counts;
      for (int64_t from = 0; from < n; ++from) {
        const auto count = static_cast<int64_t>(to == from ? 0 : random.Below(4));
        if (count > 0) AddLink(NodeId(from), NodeId(to), {count * 25'000'000'000, 500'000}, spec);
        counts.push_back(std::to_string(count));
      }
      rows.push_back("[" + Join(counts, ",") + "]");
    }
    const std::string text = fmt::format(
        R"({{"msccl_type":"topology","name":"mine","switches":[],"links":[{}]}})", Join(rows, ","));
    const StatusOr<Topology> topology = ReadPeer(text, Link("bandwidth=25GB/s"));
    ASSERT_TRUE(topology.ok()) << topology.status().message() << "\n" << text;
    spec.source = topology->spec().source;
    EXPECT_EQ(*topology, Topology::Create(spec).value()) << text;
  }
}

}  // namespace
}  // namespace xccl
