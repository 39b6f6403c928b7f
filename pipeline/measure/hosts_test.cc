#include "pipeline/measure/hosts.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ir/sizes.h"
#include "ir/verify/verify_program.h"

namespace xccl {
namespace {

// Hosts on leaves: bytes per us that each sends, receives, and that a leaf carries up and down.
struct Network {
  std::vector<int32_t> hosts, leaf;
  std::vector<double> out, in;
  double uplink = 1e9;
  double alpha_us = 30, overhead_us = 5, inside = 3000;
};

// Flows share what they cross evenly; a rank's time is that of its slowest flow.
MeasureRanks On(const Network& network) {
  return [&network](const LoweredProgram& lowered, int64_t bytes) -> StatusOr<std::vector<double>> {
    const Program& program = lowered.program;
    std::map<int32_t, int> up, down, out, in;
    for (const Connection& c : program.connections) {
      const int32_t from = network.hosts[c.src.index()], to = network.hosts[c.dst.index()];
      if (from == to) continue;
      ++out[from], ++in[to];
      if (network.leaf[from] != network.leaf[to]) ++up[network.leaf[from]], ++down[network.leaf[to]];
    }
    std::vector<double> times(network.hosts.size(), 0);
    for (const Connection& c : program.connections) {
      const int32_t from = network.hosts[c.src.index()], to = network.hosts[c.dst.index()];
      double rate = network.inside;
      if (from != to) rate = std::min(network.out[from] / out[from], network.in[to] / in[to]);
      if (network.leaf[from] != network.leaf[to])
        rate = std::min(
            {rate, network.uplink / up[network.leaf[from]], network.uplink / down[network.leaf[to]]});
      const auto messages = static_cast<double>(lowered.collective.ChunksOf(PartId(0)));
      const double time =
          network.alpha_us + (messages - 1) * network.overhead_us + static_cast<double>(bytes) / rate;
      times[c.src.index()] = std::max(times[c.src.index()], time);
      times[c.dst.index()] = std::max(times[c.dst.index()], time);
    }
    return times;
  };
}

std::vector<std::string> Names(size_t count) {
  std::vector<std::string> names;
  for (size_t h = 0; h < count; ++h) names.push_back(fmt::format("h{}", h));
  return names;
}

TEST(MeasureHosts, FindsUnevenHostsOnOneSwitch) {
  Network network{.hosts = {0, 1, 2, 3, 4},
                  .leaf = {0, 0, 0, 0, 0},
                  .out = {120, 60, 120, 60, 30},
                  .in = {120, 120, 120, 60, 30}};
  const MeasuredHosts found = MeasureHosts(network.hosts, Names(5), On(network)).value();
  for (size_t h = 0; h < 5; ++h) {
    EXPECT_NEAR(found.out[h], network.out[h], network.out[h] / 50) << h;
    EXPECT_NEAR(found.in[h], network.in[h], network.in[h] / 50) << h;
  }
  EXPECT_EQ(found.up.size(), 1U);
  EXPECT_NEAR(found.between.alpha_us, 30, 2);
  EXPECT_NEAR(found.between.overhead_us, 5 + 16.0 / 60, 0.1);
  EXPECT_THAT(found.notices, testing::IsEmpty());
}

TEST(MeasureHosts, FindsLeavesThatShareUplinks) {
  for (const double uplink : {60.0, 120.0, 240.0}) {
    Network network{.hosts = {0, 0, 1, 1, 2, 2, 3, 3},
                    .leaf = {0, 0, 1, 1},
                    .out = {120, 120, 120, 120},
                    .in = {120, 120, 120, 120}};
    network.uplink = uplink;
    const MeasuredHosts found = MeasureHosts(network.hosts, Names(4), On(network)).value();
    EXPECT_THAT(found.notices, testing::IsEmpty());
    if (uplink == 240) {
      EXPECT_EQ(found.up.size(), 1U) << "nothing is shared";
      continue;
    }
    EXPECT_EQ(found.leaf, (std::vector<int32_t>{0, 0, 1, 1}));
    ASSERT_EQ(found.up.size(), 2U);
    EXPECT_NEAR(found.up[0], uplink, uplink / 50);
    EXPECT_NEAR(found.down[1], uplink, uplink / 50);
    EXPECT_NEAR(found.several, 1, 0.02) << "a NIC carries as much in two flows as in one";
    EXPECT_NEAR(found.inside.bytes_per_us, 3000, 60);
  }
}

TEST(MeasureHosts, MakesATopology) {
  Network network{.hosts = {0, 0, 1, 1, 2, 2, 3, 3},
                  .leaf = {0, 0, 1, 1},
                  .out = {120, 120, 120, 120},
                  .in = {120, 120, 120, 120}};
  network.uplink = 60;
  const MeasuredHosts found = MeasureHosts(network.hosts, Names(4), On(network)).value();
  const Topology topology = TopologyOf(found, "a test").value();
  EXPECT_EQ(topology.num_ranks(), 8);
  EXPECT_EQ(topology.num_hosts(), 4);
  EXPECT_EQ(topology.num_nodes(), 8 + 4 + 4 + 1 + 2);  // ranks, memories, NICs, the spine, two leaves
  EXPECT_EQ(topology.spec().source, "a test");
}

TEST(MeasureHosts, SaysWhatItCannotExplain) {
  // Two leaves whose one host each shares with all: no clean partition.
  Network network{.hosts = {0, 1, 2}, .leaf = {0, 1, 0}, .out = {120, 120, 120}, .in = {120, 120, 120}};
  network.uplink = 60;
  MeasureRanks odd = [&](const LoweredProgram& lowered, int64_t bytes) {
    StatusOr<std::vector<double>> times = On(network)(lowered, bytes);
    for (const Connection& c : lowered.program.connections)
      if (c.src == Rank(2) && c.dst == Rank(1)) (*times)[1] = static_cast<double>(bytes) / 120;
    return times;
  };
  const MeasuredHosts found = MeasureHosts(network.hosts, Names(3), odd).value();
  EXPECT_THAT(
      found.notices,
      testing::Contains("h2 to h1: 120.0 MB/s; 2 leaves of hosts that share links do not explain it"));
  EXPECT_EQ(found.up.size(), 1U) << "a star is what is left";
}

}  // namespace
}  // namespace xccl
