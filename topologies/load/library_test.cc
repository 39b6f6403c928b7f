// The library's machines: their names and sizes, and their bandwidths against the datasheets' figures, most
// of them by cuts, which see nothing of how a file is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "topologies/cuts.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int64_t kGb = 1'000'000'000;

TEST(Library, HasTheseMachines) {
  constexpr std::tuple<const char*, int, int> kMachines[] = {{"a3-mega", 8, 1},
                                                             {"a4", 8, 1},
                                                             {"ascend-8", 8, 1},
                                                             {"aurora", 63744, 10624},
                                                             {"cloudmatrix384", 384, 48},
                                                             {"colossus", 102400, 12800},
                                                             {"deepseek-v3", 2048, 256},
                                                             {"dgx-a100", 8, 1},
                                                             {"dgx-b200", 8, 1},
                                                             {"dgx-b300", 8, 1},
                                                             {"dgx-h100", 8, 1},
                                                             {"dgx1", 8, 1},
                                                             {"dgx1-full", 8, 1},
                                                             {"dgx2", 16, 1},
                                                             {"dragonfly-72", 72, 72},
                                                             {"fat-tree-128", 128, 128},
                                                             {"frontier", 75776, 9472},
                                                             {"gb200-nvl72", 72, 18},
                                                             {"gb300-nvl72", 72, 18},
                                                             {"hgx-h200", 8, 1},
                                                             {"hpn7-pod", 15360, 1920},
                                                             {"jupiter", 24000, 6000},
                                                             {"llama3-24k", 24576, 3072},
                                                             {"meta-100k", 122880, 15360},
                                                             {"mi250x", 16, 1},
                                                             {"mi250x-full", 16, 1},
                                                             {"mi300x", 8, 1},
                                                             {"mi325x", 8, 1},
                                                             {"mi355x", 8, 1},
                                                             {"ndv2", 8, 1},
                                                             {"ndv4", 8, 1},
                                                             {"ndv5", 8, 1},
                                                             {"ndv6", 72, 18},
                                                             {"nvl72-128", 9216, 2304},
                                                             {"nvl72-1820", 131040, 32760},
                                                             {"nvl72-2", 144, 36},
                                                             {"nvl72-4", 288, 72},
                                                             {"nvl72-8", 576, 144},
                                                             {"p4d", 8, 1},
                                                             {"p5", 8, 1},
                                                             {"p5en", 8, 1},
                                                             {"p6-b200", 8, 1},
                                                             {"rail-128", 1024, 128},
                                                             {"rail-16", 128, 16},
                                                             {"rail-2", 16, 2},
                                                             {"rail-32", 256, 32},
                                                             {"rail-4", 32, 4},
                                                             {"rail-64", 512, 64},
                                                             {"rail-8", 64, 8},
                                                             {"superpod-h100", 1024, 128},
                                                             {"tpu-v4", 64, 1},
                                                             {"tpu-v5e", 256, 1},
                                                             {"tpu-v5p", 64, 1},
                                                             {"tpu-v5p-pod", 8960, 1},
                                                             {"tpu7x", 64, 1},
                                                             {"tpu7x-pod", 9216, 1},
                                                             {"trn2", 16, 1},
                                                             {"trn2-ultraserver", 64, 4}};
  std::vector<std::string> names;
  for (const auto& [name, ranks, hosts] : kMachines) {
    SCOPED_TRACE(name);
    const StatusOr<Topology> topology = LoadTopology(name);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    EXPECT_EQ(topology->name(), name);
    EXPECT_EQ(topology->num_ranks(), ranks);
    EXPECT_EQ(topology->num_hosts(), hosts);
    EXPECT_NE(topology->spec().source, "");
    names.emplace_back(name);
  }
  EXPECT_EQ(LibraryNames(), names);
}

// Bandwidth out of a GPU without NICs, against the datasheets' figures.
TEST(Library, GpusHaveTheBandwidthOfTheirDatasheets) {
  constexpr std::tuple<const char*, int64_t> kPerGpu[] = {
      {"dgx1", 150},   {"dgx2", 150},     {"dgx-a100", 300}, {"dgx-h100", 450},
      {"ndv4", 300},   {"ndv5", 450},     {"p5", 450},       {"gb200-nvl72", 900},
      {"mi300x", 448}, {"ascend-8", 196}, {"tpu-v4", 300},   {"tpu-v5e", 200}};
  for (const auto& [name, gb_per_s] : kPerGpu) {
    SCOPED_TRACE(name);
    const StatusOr<Topology> topology = LoadTopology(name);
    ASSERT_TRUE(topology.ok());
    for (int32_t r = 0; r < topology->num_ranks(); ++r) {
      int64_t out = 0, in = 0;
      const NodeId gpu = topology->NodeOf(Rank(r));
      for (LinkId link : topology->Out(gpu))
        if (topology->node(topology->link(link).to).kind != NodeKind::kNic)
          out += topology->link(link).bandwidth_bytes_per_s;
      for (LinkId link : topology->In(gpu))
        if (topology->node(topology->link(link).from).kind != NodeKind::kNic)
          in += topology->link(link).bandwidth_bytes_per_s;
      EXPECT_EQ(out, gb_per_s * kGb) << r;
      EXPECT_EQ(in, out) << r;
    }
  }
}

// The cut between a rank and all others, in both directions.
void ExpectCutOf(const Topology& topology, Rank rank, int64_t bytes_per_s) {
  std::vector<Rank> others;
  for (int32_t r = 0; r < topology.num_ranks(); ++r)
    if (Rank(r) != rank) others.emplace_back(r);
  const Rank one[] = {rank};
  EXPECT_EQ(MinCut(topology, one, others), bytes_per_s) << rank.value;
  EXPECT_EQ(MinCut(topology, others, one), bytes_per_s) << rank.value;
}

// Machines of one host: what a GPU has to the others within the host, and what all NICs of a host carry to
// another host of the kind.
TEST(Library, HostsHaveTheBandwidthsOfTheirDatasheets) {
  constexpr std::tuple<const char*, double, int64_t> kHosts[] = {
      {"hgx-h200", 450, 400},      {"dgx-b200", 900, 400}, {"dgx-b300", 900, 800}, {"p5en", 450, 400},
      {"p6-b200", 900, 400},       {"a3-mega", 450, 200},  {"a4", 900, 400},       {"mi325x", 896 / 2, 400},
      {"mi355x", 1075.2 / 2, 400}, {"trn2", 1024 / 2, 400}};
  for (const auto& [name, gpu, nics] : kHosts) {
    SCOPED_TRACE(name);
    const StatusOr<Topology> host = LoadTopology(name);
    ASSERT_TRUE(host.ok()) << host.status().message();
    for (const int32_t r : {0, host->num_ranks() - 1})
      ExpectCutOf(*host, Rank(r), static_cast<int64_t>(gpu * static_cast<double>(kGb)));
    LoadOptions two;
    two.hosts = 2;
    const StatusOr<Topology> hosts = LoadTopology(name, two);
    ASSERT_TRUE(hosts.ok()) << hosts.status().message();
    EXPECT_EQ(CutBetweenHalves(*hosts), nics * kGb);
  }
}

// Machines of several hosts, and cubes: the cut of a GPU (with its NIC, where a fabric joins the NICs), the
// cut between the halves, and the NICs of the first host.
TEST(Library, RacksAndCubesHaveTheBandwidthsOfTheirDatasheets) {
  constexpr std::tuple<const char*, int64_t, int64_t, int64_t> kMachines[] = {
      {"gb300-nvl72", 900, 36 * 900, 4 * 100},
      {"ndv6", 900, 36 * 900, 4 * 50},
      {"nvl72-2", 900 + 50, 72 * 50, 4 * 50},
      {"nvl72-4", 900 + 50, 2 * 72 * 50, 4 * 50},
      {"nvl72-8", 900 + 50, 4 * 72 * 50, 4 * 50},
      {"trn2-ultraserver", (1024 + 256) / 2, 2 * 16 * 64, 16 * 25},
      {"tpu-v5p", 1200 / 2, 2 * 16 * 100, 0},
      {"tpu7x", 1200 / 2, 2 * 16 * 100, 0},
      {"cloudmatrix384", 392, 192 * 392, 8 * 50},
  };
  for (const auto& [name, gpu, halves, nics] : kMachines) {
    SCOPED_TRACE(name);
    const StatusOr<Topology> topology = LoadTopology(name);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    for (const int32_t r : {0, topology->num_ranks() - 1}) ExpectCutOf(*topology, Rank(r), gpu * kGb);
    EXPECT_EQ(CutBetweenHalves(*topology), halves * kGb);
    int64_t to_nics = 0;
    for (const Link& link : topology->spec().links) {
      const Node& nic = topology->node(link.to);
      if (topology->IsGpu(link.from) && nic.kind == NodeKind::kNic && nic.host == HostId(0))
        to_nics += link.bandwidth_bytes_per_s;
    }
    EXPECT_EQ(to_nics, nics * kGb);
  }
}

// What all links of one direction carry from nodes whose id begins with one text to nodes whose id begins
// with another, in GB/s. Ids lose the names of clusters: "pod0.leaf3" is "leaf3".
double GbPerSecond(const Topology& topology, std::string_view from, std::string_view to) {
  const auto is = [&](NodeId n, std::string_view stem) {
    const std::string& id = topology.node(n).id;
    const size_t begin = id.find(stem);
    return begin == 0 || (begin != id.npos && id[begin - 1] == '.');
  };
  double sum = 0;
  for (const Link& link : topology.spec().links)
    if (is(link.from, from) && is(link.to, to)) sum += static_cast<double>(link.bandwidth_bytes_per_s);
  return sum / static_cast<double>(kGb);
}

// The levels of large machines carry what their sources say.
TEST(Library, LevelsOfLargeMachinesHaveTheRatiosOfTheirSources) {
  constexpr std::tuple<const char*, const char*, const char*, double> kLevels[] = {
      {"superpod-h100", "nic", "leaf", 1024 * 50},
      {"superpod-h100", "leaf", "spine", 1024 * 50},
      {"deepseek-v3", "nic", "rail", 2048 * 50},
      {"llama3-24k", "leaf", "spine", 24576 * 50},
      {"llama3-24k", "spine", "aggregation", 24576 * 50 / 7.0},
      {"hpn7-pod", "nic", "plane0.leaf", 15360 * 25},
      {"hpn7-pod", "plane0.leaf", "plane0.spine", 120 * 60 * 50},
      {"hpn7-pod", "plane0.leaf", "plane1.spine", 0},
      {"nvl72-128", "leaf", "spine", 9216 * 50},
      {"jupiter", "leaf", "spine", 24000 * 25},
      {"jupiter", "spine", "spine", 25 * 24 * 16 * 50},
      {"aurora", "router", "router", 166 * (32 * 31 + 165 * 2) * 25},
      {"colossus", "spine", "core", 102400 * 50},
      {"meta-100k", "spine", "aggregation", 122880 * 50 / 2.8},
      {"meta-100k", "aggregation", "core", 122880 * 50 / 2.8},
      {"nvl72-1820", "leaf", "spine", 131040 * 50},
      {"frontier", "nic", "router", 74 * 512 * 25},
      {"frontier", "router", "router", 74 * (32 * 31 + 73 * 4) * 25}};
  for (const auto& [name, from, to, gb_per_s] : kLevels) {
    SCOPED_TRACE(std::string(name) + " " + from);
    const StatusOr<Topology> topology = LoadTopology(name);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    EXPECT_NEAR(GbPerSecond(*topology, from, to), gb_per_s, 0.01);
  }
}

TEST(Library, LargeMachinesAreLeftOutBySize) {
  const std::vector<std::string> small = LibraryNamesUpTo(2'200);
  const auto is_in = [&](std::string_view name) { return std::ranges::find(small, name) != small.end(); };
  for (const char* name : {"dgx-h100", "rail-128", "cloudmatrix384"}) EXPECT_TRUE(is_in(name)) << name;
  for (const char* name : {"superpod-h100", "tpu-v5p-pod", "frontier", "nvl72-1820"})
    EXPECT_FALSE(is_in(name)) << name;
}

// No host of CloudMatrix384 is behind fewer links than its GPUs have, nor is any half of a host.
TEST(Library, CloudMatrixDoesNotBlock) {
  const Topology topology = LoadTopology("cloudmatrix384").value();
  std::vector<Rank> host, rest;
  for (int32_t r = 0; r < topology.num_ranks(); ++r)
    (topology.HostOf(Rank(r)) == HostId(5) ? host : rest).emplace_back(r);
  EXPECT_EQ(MinCut(topology, host, rest), 8 * 392 * kGb);
  EXPECT_EQ(MinCut(topology, std::span(host).first(4), rest), 4 * 392 * kGb);
}

}  // namespace
}  // namespace xccl
