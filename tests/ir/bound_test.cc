#include "ir/bounds/bound.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/testing/shared_data.h"
#include "base/units.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "ir/testing/graphs.h"
#include "ir/testing/schedules.h"
#include "ir/time_model.h"
#include "ir/verify/verify_schedule.h"
#include "topologies/load/load.h"
#include "topologies/paths.h"
#include "topologies/symmetry.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

using testing::Duplex;
using testing::Edge;
using testing::kGb;
using testing::MakeCollective;
using testing::MakeGraph;
using testing::MakeGrid;

Bound BoundOf(const Topology& topology, const Collective& collective, int64_t bytes,
              TimeModel model = TimeModel::kPipelined) {
  return LowerBound(topology, collective, bytes, model).value();
}

TEST(CheckReachable, NamesTwoRanks) {
  const Topology topology = MakeGraph("pair", 2, 0, {{0, 1}});
  EXPECT_EQ(CheckReachable(topology, MakeCollective(CollectiveKind::kAllgather, 2)),
            Infeasible("pair: no path from rank 1 to rank 0, which allgather needs"));
  EXPECT_EQ(CheckReachable(topology, MakeCollective(CollectiveKind::kBroadcast, 2, Rank(0))), OkStatus());
  EXPECT_EQ(CheckReachable(topology, MakeCollective(CollectiveKind::kReduce, 2, Rank(0))),
            Infeasible("pair: no path from rank 1 to rank 0, which reduce needs"));
  EXPECT_EQ(CheckReachable(topology, MakeCollective(CollectiveKind::kBroadcast, 3, Rank(0))),
            InvalidInput("pair: no rank 2, which broadcast needs; ranks are 0..1"));
}

TEST(CheckReachable, LeavesOutWhatIsAlwaysEmpty) {
  const Topology topology = MakeGraph("pair", 2, 0, {{0, 1}});
  EXPECT_EQ(CheckReachable(topology, MakeCollective(CollectiveKind::kAllgatherv, 2, std::nullopt, {1, 0})),
            OkStatus());
}

// On so many ranks that differ, not every rank is searched from.
TEST(CheckReachable, OfManyRanksThatDiffer) {
  constexpr int32_t kRanks = 20'000;
  std::vector<Edge> edges;
  for (int32_t r = 0; r + 1 < kRanks; ++r) {
    edges.push_back({r, r + 1});
    if (r + 2 < kRanks) edges.push_back({r + 1, r});
  }
  const Topology line = MakeGraph("line", kRanks, 0, edges);
  EXPECT_EQ(CheckReachable(line, MakeCollective(CollectiveKind::kAllgather, kRanks)),
            Infeasible("line: no path from rank 19999 to rank 0, which allgather needs"));
}

TEST(LatencyBound, CountsOverheadWhereEveryUnitPaysIt) {
  // 0 -> 1 -> 2 and a slower shortcut 0 -> 2.
  const Topology topology =
      MakeGraph("line", 3, 0, {{0, 1, 1, 100, 10}, {1, 2, 1, 100, 10}, {0, 2, 1, 250, 5}});
  const Collective broadcast = MakeCollective(CollectiveKind::kBroadcast, 3, Rank(0));
  EXPECT_EQ(BoundOf(topology, broadcast, 4).latency_ps, 210'000);
  EXPECT_EQ(BoundOf(topology, broadcast, 4, TimeModel::kBlocking).latency_ps, 220'000);
}

// Rank 2 gets the part from rank 0 or 1, which both have it; the message of either pays the overhead.
TEST(LatencyBound, StartsAtTheNearestHolder) {
  const Topology topology = MakeGraph("line", 3, 0, {{0, 1, 1, 1, 0}, {1, 2, 1, 100, 10}});
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kCustom;
  spec.custom_name = "two copies";
  spec.ranks = {Rank(0), Rank(1), Rank(2)};
  spec.custom_weights = {1};
  spec.pre = {{Rank(0), PartId(0), {Rank(0)}}, {Rank(1), PartId(0), {Rank(0)}}};
  spec.post = {{Rank(2), PartId(0), {Rank(0)}}};
  EXPECT_EQ(BoundOf(topology, Collective::Create(spec).value(), 4).latency_ps, 110'000);
}

// A sum for one rank takes one search, backwards from it, where links have no overhead.
TEST(LatencyBound, FarthestHolderOfASum) {
  for (const char* name : {"mesh:3x4", "fat-tree:k=4", "dragonfly:5x2x2"}) {
    const Topology topology = LoadTopology(name).value();
    for (const int32_t root : {0, topology.num_ranks() - 1}) {
      const auto ways = LeastLatencyTo(topology, topology.NodeOf(Rank(root)));
      int64_t farthest = 0;
      for (int32_t r = 0; r < topology.num_ranks(); ++r)
        farthest = std::max(farthest, *ways[topology.NodeOf(Rank(r)).index()]);
      for (const CollectiveKind kind : {CollectiveKind::kReduce, CollectiveKind::kGather})
        EXPECT_EQ(BoundOf(topology, MakeCollective(kind, topology.num_ranks(), Rank(root)), 4).latency_ps,
                  farthest)
            << name;
    }
  }
}

// One rank stands for its orbit. A cable that is next to nothing makes all ranks differ, and the bound, then
// of all ranks, is the same.
TEST(LowerBound, OfOrbitsIsThatOfAllRanks) {
  std::vector<Topology> machines;
  for (const char* name : {"torus:4x4x4", "leaf-spine:8x2x8"}) machines.push_back(LoadTopology(name).value());
  machines.push_back(ReadNativeXml(R"(<topology name="rails">
    <cluster hosts="2" name="pod">
      <cluster hosts="8">
        <nvswitch gpus="4" multicast="true" reduce="true"/><nic id="nic" count="4"/>
        <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="50GB/s"/>
        <fabric type="rails" spines="2"/>
      </cluster>
      <fabric id="core" type="switch" bandwidth="100GB/s"/>
    </cluster></topology>)",
                                   "rails.xml")
                         .value());
  for (const Topology& topology : machines) {
    ASSERT_TRUE(FindTranslations(topology).IsTransitive()) << topology.name();
    TopologySpec spec = topology.spec();
    Link least = spec.links.front();
    least.bandwidth_bytes_per_s = 1;
    spec.links.push_back(least);
    const Topology uneven = Topology::Create(std::move(spec)).value();
    ASSERT_TRUE(FindTranslations(uneven).IsTrivial()) << topology.name();
    for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
                                      CollectiveKind::kAllreduce, CollectiveKind::kAlltoall}) {
      const Collective collective = MakeCollective(kind, topology.num_ranks());
      for (const int64_t bytes : {int64_t{1} << 12, int64_t{1} << 24}) {
        const double of_all = static_cast<double>(BoundOf(uneven, collective, bytes).bound_ps);
        const double of_orbits = static_cast<double>(BoundOf(topology, collective, bytes).bound_ps);
        // The linear program of an alltoall has too many sources where all ranks differ.
        EXPECT_GE(of_orbits, of_all * (1 - 1e-5)) << topology.name() << " " << ToString(kind) << " " << bytes;
        if (kind != CollectiveKind::kAlltoall) {
          EXPECT_LE(of_orbits, of_all * (1 + 1e-5))
              << topology.name() << " " << ToString(kind) << " " << bytes;
        }
      }
    }
  }
}

// More ranks than the search for cuts is for: the links of one GPU bound one part. The partition of all GPUs
// bounds an allreduce.
TEST(BandwidthBound, GroupsOfLargeMachines) {
  const Topology topology = LoadTopology("torus:256x129").value();
  const int32_t ranks = topology.num_ranks();
  constexpr double kPs = (1 << 30) / 200e9 * 1e12;
  for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
    const Bound bound = BoundOf(topology, MakeCollective(kind, ranks, Rank(0)), 1 << 30);
    EXPECT_NEAR(bound.bandwidth_ps, kPs, 1) << ToString(kind);
    EXPECT_EQ(bound.bandwidth_kind, BoundKind::kRelaxed) << ToString(kind);
  }
  const Bound bound = BoundOf(topology, MakeCollective(CollectiveKind::kAllreduce, ranks), 1 << 30);
  EXPECT_NEAR(bound.bandwidth_ps, 2 * kPs * (ranks - 1) / ranks, kPs * 1e-9);
  EXPECT_EQ(bound.bandwidth_kind, BoundKind::kCounting);
}

TEST(LowerBound, RefusesTimesThatDoNotFit) {
  const Collective allgather = MakeCollective(CollectiveKind::kAllgather, 8);
  const auto refusal = [&](const char* topology, int64_t bytes) {
    return LowerBound(LoadTopology(topology).value(), allgather, bytes, TimeModel::kPipelined)
        .status()
        .message();
  };
  EXPECT_EQ(refusal("ring:8@bandwidth=1B/s", int64_t{4} << 30),
            "ring:8@bandwidth=1B/s: allgather of 4GiB takes 21748.2 days at least; times of up to 1 day are "
            "supported");
}

// The longest latency that a link may have adds up along the longest path.
TEST(LatencyBound, LongestLatencies) {
  const auto latency_ps = [](const char* name, CollectiveKind kind) {
    const Topology topology = LoadTopology(name).value();
    return BoundOf(topology, MakeCollective(kind, topology.num_ranks()), 1024).latency_ps;
  };
  EXPECT_EQ(latency_ps("mesh:100@latency=1s", CollectiveKind::kAllgather), 99 * kMaxLatencyPs);
  // A link of a large machine costs its whole latency.
  EXPECT_EQ(latency_ps("full-mesh:64@latency=1s", CollectiveKind::kAllgather), kMaxLatencyPs);
  EXPECT_EQ(latency_ps("nvswitch:4@latency=1s,overhead=1s", CollectiveKind::kAllgather), 3 * kMaxLatencyPs);
}

struct Known {
  std::string topology;
  CollectiveKind kind;
  double algbw_gb_per_s;
  BoundKind bound_kind;
};

// ForestColl's optima for allgather, and closed forms for grids with links of 50 GB/s: allreduce reaches
// 2n/(n+1) links on an n × n mesh, and half of allgather on tori.
TEST(BandwidthBound, KnownOptima) {
  const std::vector<Known> rows = {
      {"mesh:3x3", CollectiveKind::kAllgather, 50 * 9 / 4.0, BoundKind::kCut},
      {"mesh:3x3", CollectiveKind::kAllreduce, 50 * 6 / 4.0, BoundKind::kCounting},
      {"mesh:4x4", CollectiveKind::kAllreduce, 50 * 8 / 5.0, BoundKind::kCounting},
      {"mesh:5x5", CollectiveKind::kAllreduce, 50 * 10 / 6.0, BoundKind::kCounting},
      {"mesh:8x8", CollectiveKind::kAllreduce, 50 * 16 / 9.0, BoundKind::kCounting},
      {"mesh:8x8", CollectiveKind::kReduceScatter, 50 * 128 / 63.0, BoundKind::kCut},
      {"torus:8x8", CollectiveKind::kAllgather, 50 * 256 / 63.0, BoundKind::kCut},
      {"torus:8x8", CollectiveKind::kAllreduce, 50 * 128 / 63.0, BoundKind::kCounting},
      {"torus:8x8", CollectiveKind::kGather, 50 * 256 / 63.0, BoundKind::kFlow},
      {"torus:8x8", CollectiveKind::kBroadcast, 200, BoundKind::kCut},
      {"torus:4x4x4", CollectiveKind::kAllgather, 50 * 6.0 * 64 / 63, BoundKind::kCut},
      {"torus:4x4", CollectiveKind::kAlltoall, 100, BoundKind::kLp},
      {"hypercube:4", CollectiveKind::kAlltoall, 100, BoundKind::kLp},
      {"mesh:4x4", CollectiveKind::kAlltoall, 50, BoundKind::kLp},
      {"full-mesh:8", CollectiveKind::kAllreduce, 200, BoundKind::kCounting},
      {"nvswitch:8", CollectiveKind::kAllgather, 450 * 8 / 7.0, BoundKind::kCut},
      {"nvswitch:8", CollectiveKind::kAllreduce, 450 * 4 / 7.0, BoundKind::kCounting},
      {"nvswitch:8@multicast=true,reduce=true", CollectiveKind::kAllreduce, 450, BoundKind::kCut},
  };
  for (const Known& row : rows) {
    SCOPED_TRACE(row.topology + " " + std::string(ToString(row.kind)));
    const StatusOr<Topology> topology = LoadTopology(row.topology);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    const Collective collective = MakeCollective(
        row.kind, topology->num_ranks(), IsRooted(row.kind) ? std::optional<Rank>(Rank(0)) : std::nullopt);
    // A size that divides by all of 9, 25, 64 ranks and 16 bytes.
    const Bound bound = BoundOf(*topology, collective, 64LL * 9 * 25 * 16 * 1000);
    EXPECT_NEAR(static_cast<double>(bound.size_bytes) / bound.bandwidth_ps * 1e3, row.algbw_gb_per_s,
                1e-6 * row.algbw_gb_per_s);
    EXPECT_EQ(bound.bandwidth_kind, row.bound_kind);
  }
}

TEST(BandwidthBound, ForestCollOptima) {
  const std::vector<std::pair<std::string, double>> rows = {
      {"dgx1", 171.4286 * 1.073741824},
      {"a100x2", 346.6667},
      {"a100x4", 266.6667},
      {"mi250x2", 354.1333},
      {"mi250x4", 341.3333},
  };
  for (const auto& [name, algbw] : rows) {
    const std::string relative = "data/graphs/" + name + ".xml";
    const std::optional<std::string> file = SharedData(relative);
    if (!file) GTEST_SKIP() << SharedDataMissing(relative);
    const StatusOr<Topology> topology = LoadTopology(*file);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    const Bound bound =
        BoundOf(*topology, MakeCollective(CollectiveKind::kAllgather, topology->num_ranks()), 1LL << 30);
    EXPECT_NEAR(static_cast<double>(bound.size_bytes) / bound.bandwidth_ps * 1e3, algbw, 1e-3) << name;
    EXPECT_EQ(bound.bandwidth_kind, BoundKind::kCut);
  }
}

// A random strongly connected graph; the last `switches` nodes are switches.
Topology RandomGraph(Random& random, int32_t gpus, int32_t switches) {
  const int32_t nodes = gpus + switches;
  std::vector<Edge> edges;
  for (int32_t n = 0; n < nodes; ++n)
    edges.push_back({n, (n + 1) % nodes, 1 + static_cast<int64_t>(random.Below(9))});
  for (int32_t i = 0; i < 2 * nodes; ++i) {
    const int32_t from = static_cast<int32_t>(random.Below(nodes)),
                  to = static_cast<int32_t>(random.Below(nodes));
    if (from != to) edges.push_back({from, to, 1 + static_cast<int64_t>(random.Below(9))});
  }
  return MakeGraph("random", gpus, switches, edges);
}

// The largest supply inside ÷ bandwidth out, in ps, over all sets that leave out a sink.
double WorstCutByTrial(const Topology& topology, const std::vector<int64_t>& supply,
                       const std::vector<bool>& sink, bool reversed) {
  double worst = 0;
  for (uint32_t set = 1; set < 1U << topology.num_nodes(); ++set) {
    double inside = 0, out = 0;
    bool leaves_out = false;
    for (int32_t n = 0; n < topology.num_nodes(); ++n) {
      if (set >> n & 1)
        inside += static_cast<double>(supply[n]);
      else
        leaves_out |= sink[n];
    }
    for (const Link& link : topology.spec().links) {
      const bool from = set >> link.from.value & 1, to = set >> link.to.value & 1;
      if (reversed ? to && !from : from && !to) out += static_cast<double>(link.bandwidth_bytes_per_s);
    }
    if (leaves_out && inside > 0) worst = std::max(worst, inside / out * 1e12);
  }
  return worst;
}

TEST(BandwidthBound, WorstOfAllCuts) {
  Random random(1);
  for (int trial = 0; trial < 150; ++trial) {
    const int32_t gpus = 2 + static_cast<int32_t>(random.Below(5));
    const Topology topology = RandomGraph(random, gpus, static_cast<int32_t>(random.Below(4)));
    std::vector<int64_t> counts;
    for (int32_t r = 0; r < gpus; ++r) counts.push_back(static_cast<int64_t>(random.Below(4)));
    counts[random.Below(static_cast<uint64_t>(gpus))] = 2;
    for (CollectiveKind kind :
         {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, CollectiveKind::kAllgatherv,
          CollectiveKind::kReduceScatterv, CollectiveKind::kBroadcast, CollectiveKind::kReduce,
          CollectiveKind::kGather, CollectiveKind::kScatter}) {
      SCOPED_TRACE(std::to_string(trial) + " " + std::string(ToString(kind)));
      const bool counted = kind == CollectiveKind::kAllgatherv || kind == CollectiveKind::kReduceScatterv;
      const bool whole = kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce;
      const bool to_one = kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
      const bool reversed = kind == CollectiveKind::kReduceScatter ||
                            kind == CollectiveKind::kReduceScatterv || kind == CollectiveKind::kReduce ||
                            kind == CollectiveKind::kScatter;
      const Collective collective =
          MakeCollective(kind, gpus, whole || to_one ? std::optional<Rank>(Rank(0)) : std::nullopt,
                         counted ? counts : std::vector<int64_t>());
      const CollectiveSizes sizes(collective, 1 << 20);
      std::vector<int64_t> supply(static_cast<size_t>(topology.num_nodes()), 0);
      std::vector<bool> sink(supply.size(), false);
      for (int32_t r = 0; r < gpus; ++r) {
        if (whole)
          supply[r] = r == 0 ? sizes.PartBytes(PartId(0)) : 0;
        else
          supply[r] = sizes.PartBytes(PartId(r));
        sink[r] = !to_one || r == 0;
      }
      const double expected = WorstCutByTrial(topology, supply, sink, reversed);
      EXPECT_NEAR(BoundOf(topology, collective, 1 << 20).bandwidth_ps, expected, 1e-9 * expected);
    }
  }
}

// The least bandwidth out of `blocks` blocks of GPUs, given by rank, over all places of the switches.
double LeastBetweenByTrial(const Topology& topology, std::vector<int32_t> block, int32_t blocks) {
  const size_t gpus = block.size();
  block.resize(static_cast<size_t>(topology.num_nodes()), -1);
  double least = std::numeric_limits<double>::infinity();
  while (true) {
    double out = 0;
    for (const Link& link : topology.spec().links)
      if (const int32_t from = block[link.from.index()]; from >= 0 && from != block[link.to.index()])
        out += static_cast<double>(link.bandwidth_bytes_per_s);
    least = std::min(least, out);
    size_t i = gpus;
    for (; i < block.size() && ++block[i] == blocks; ++i) block[i] = -1;
    if (i == block.size()) return least;
  }
}

// The worst partition of GPUs for allreduce, found by trying all. Requires: GPUs first, and equal bandwidth
// in both directions.
double WorstPartitionByTrial(const Topology& topology, double bytes) {
  const int32_t n = topology.num_ranks();
  double worst = 0;
  std::vector<int32_t> block(static_cast<size_t>(n), 0);
  while (true) {
    const int32_t blocks = *std::ranges::max_element(block) + 1;
    if (blocks > 1)
      worst = std::max(worst, 2 * (blocks - 1) * bytes / LeastBetweenByTrial(topology, block, blocks) * 1e12);
    // The next restricted growth string.
    int32_t i = n - 1;
    for (; i > 0; --i) {
      const int32_t most = *std::max_element(block.begin(), block.begin() + i);
      if (block[i] <= most) break;
    }
    if (i == 0) return worst;
    ++block[i];
    std::fill(block.begin() + i + 1, block.end(), 0);
  }
}

TEST(BandwidthBound, AllreduceIsTheWorstPartition) {
  Random random(2);
  for (int trial = 0; trial < 120; ++trial) {
    const int32_t gpus = 2 + static_cast<int32_t>(random.Below(5));
    const int32_t nodes = gpus + static_cast<int32_t>(trial % 2 == 0 ? 0 : random.Below(4));
    std::vector<Edge> edges;
    for (int32_t n = 1; n < nodes; ++n)
      edges.push_back({static_cast<int32_t>(random.Below(n)), n, 1 + static_cast<int64_t>(random.Below(9))});
    for (int32_t i = 0; i < nodes; ++i) {
      const int32_t a = static_cast<int32_t>(random.Below(nodes)),
                    b = static_cast<int32_t>(random.Below(nodes));
      if (a != b) edges.push_back({a, b, 1 + static_cast<int64_t>(random.Below(9))});
    }
    const Topology topology = MakeGraph("random", gpus, nodes - gpus, Duplex(edges));
    const double expected = WorstPartitionByTrial(topology, 1 << 20);
    EXPECT_NEAR(BoundOf(topology, MakeCollective(CollectiveKind::kAllreduce, gpus), 1 << 20).bandwidth_ps,
                expected, 1e-9 * expected)
        << trial;
  }
}

// NICs pass more than their GPUs send, or less: hosts of two GPUs, each behind a NIC of its own.
TEST(BandwidthBound, HostsEndWhereTheirBandwidthIsLeast) {
  std::vector<Edge> edges;
  for (int32_t h = 0; h < 3; ++h) {
    edges.push_back({2 * h, 2 * h + 1, 100});
    edges.push_back({2 * h, 6 + 2 * h, 4});
    edges.push_back({6 + 2 * h, 12, 9});
    edges.push_back({2 * h + 1, 7 + 2 * h, 7});
    edges.push_back({7 + 2 * h, 12, 5});
  }
  const Topology topology = MakeGraph("nics", 6, 7, Duplex(edges));
  const Bound bound = BoundOf(topology, MakeCollective(CollectiveKind::kAllreduce, 6), 1'000'000);
  EXPECT_NEAR(bound.bandwidth_ps, 2 * 2 * 1e6 / (3 * 9e9) * 1e12, 1);
  EXPECT_EQ(bound.bandwidth_kind, BoundKind::kCounting);
}

TEST(BandwidthBound, HostsArePartsOfAllreduce) {
  // Four hosts with two GPUs and an inner switch, each with one slow link to a fabric switch.
  TopologySpec spec;
  spec.name = "hosts";
  for (int h = 0; h < 4; ++h) spec.hosts.push_back({"h" + std::to_string(h)});
  for (int h = 0; h < 4; ++h) {
    for (int i = 0; i < 3; ++i) {
      Node node;
      node.kind = i < 2 ? NodeKind::kGpu : NodeKind::kSwitch;
      node.id = std::to_string(i);
      node.host = HostId(h);
      spec.nodes.push_back(node);
    }
  }
  Node fabric;
  fabric.kind = NodeKind::kSwitch;
  fabric.id = "fabric";
  spec.nodes.push_back(fabric);
  const auto cable = [&](int a, int b, int64_t gb) {
    spec.links.push_back({NodeId(a), NodeId(b), gb * kGb, 0, 0});
    spec.links.push_back({NodeId(b), NodeId(a), gb * kGb, 0, 0});
  };
  for (int h = 0; h < 4; ++h) {
    cable(3 * h, 3 * h + 2, 100);
    cable(3 * h + 1, 3 * h + 2, 100);
    cable(3 * h + 2, 12, 1);
  }
  const Topology topology = Topology::Create(spec).value();
  // 2 (4 - 1) S ÷ (4 × 1 GB/s).
  const Bound bound = BoundOf(topology, MakeCollective(CollectiveKind::kAllreduce, 8), 1'000'000);
  EXPECT_NEAR(bound.bandwidth_ps, 1.5e9, 1);
  EXPECT_EQ(bound.bandwidth_kind, BoundKind::kCounting);
}

// No plan is faster than the bound: tries random trees in both time models.
// The farthest two are of the kind of GPU that a sample of a few holders may lack.
TEST(LatencyBound, SearchesFromEachKindOfRankOnAMachineOfThousands) {
  const StatusOr<Topology> machine = ReadNativeXml(R"(<topology name="two-kinds">
      <cluster hosts="1986">
        <gpu count="2" id="gpu"/>
        <switch id="sw"/>
        <nic id="nic"/>
        <link from="gpu0" to="sw" bandwidth="50GB/s" latency="100ns"/>
        <link from="gpu1" to="sw" bandwidth="50GB/s" latency="5us"/>
        <link from="sw" to="nic" bandwidth="50GB/s" latency="100ns" count="5"/>
        <link from="sw" to="nic" bandwidth="50GB/s" latency="100ns" duplex="false"/>
        <fabric id="f" bandwidth="400Gbit/s" latency="1us"/>
      </cluster>
      <switch id="p0"/>
      <switch id="p1"/>
      <link from="p0" to="p1" bandwidth="50GB/s" latency="100ns" count="8"/>
    </topology>)",
                                                   "two.xml");
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kBarrier;
  spec.ranks = AllRanks(machine->num_ranks());
  const Collective barrier = *Collective::Create(std::move(spec));
  const StatusOr<Bound> bound = LowerBound(*machine, barrier, 0, TimeModel::kPipelined);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(bound->latency_ps, 12'200'000);
}

TEST(LowerBound, IsNotBeaten) {
  Random random(3);
  for (int trial = 0; trial < 60; ++trial) {
    const int32_t n = 2 + static_cast<int32_t>(random.Below(7));
    TopologySpec spec = RandomGraph(random, n, 0).spec();
    for (Link& link : spec.links) {
      link.latency_ps = static_cast<int64_t>(random.Below(3)) * 500'000;
      link.overhead_ps = static_cast<int64_t>(random.Below(3)) * 200'000;
    }
    const Topology topology = Topology::Create(spec).value();
    const int32_t chunks = 1 + static_cast<int32_t>(random.Below(4));
    for (CollectiveKind kind :
         {CollectiveKind::kAllgather, CollectiveKind::kBroadcast, CollectiveKind::kReduce,
          CollectiveKind::kReduceScatter, CollectiveKind::kAllreduce}) {
      const bool rooted = IsRooted(kind);
      const Collective collective =
          MakeCollective(kind, n, rooted ? std::optional<Rank>(Rank(0)) : std::nullopt).WithChunks(chunks);
      const Schedule schedule = collective.Reduces() ? testing::RandomSums(random, topology, collective,
                                                                           kind == CollectiveKind::kAllreduce)
                                                     : testing::RandomTrees(random, topology, collective);
      ASSERT_EQ(ToStatus(VerifySchedule(schedule, collective, topology)), OkStatus());
      for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
        for (int64_t bytes : {int64_t{0}, int64_t{4096}, int64_t{1} << 24}) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", trial, ToString(kind), ToString(model), bytes));
          SimulateOptions options;
          options.size_bytes = bytes;
          options.model = model;
          EXPECT_GE(Simulate(schedule, collective, topology, options).time_ps,
                    BoundOf(topology, collective, bytes, model).bound_ps);
        }
      }
    }
  }
}

// The bounds of allreduce hold for plans that are not trees: here halves are exchanged in each dimension of
// a cube.
TEST(LowerBound, HoldsForRecursiveDoubling) {
  for (int32_t dimensions = 1; dimensions <= 4; ++dimensions) {
    const StatusOr<Topology> topology = LoadTopology("hypercube:" + std::to_string(dimensions));
    ASSERT_TRUE(topology.ok());
    const int32_t n = 1 << dimensions;
    const Collective allreduce = MakeCollective(CollectiveKind::kAllreduce, n);
    Schedule schedule;
    schedule.num_chunks = 1;
    for (int32_t d = 0; d < dimensions; ++d)
      for (int32_t l = 0; l < topology->num_links(); ++l) {
        const Link& link = topology->link(LinkId(l));
        if ((link.from.value ^ link.to.value) == 1 << d)
          schedule.Add(ChunkId(0), 1, Rank(link.from.value), Rank(link.to.value), std::vector{LinkId(l)},
                       TransferOp::kReduce, d);
      }
    Normalize(schedule);
    ASSERT_EQ(ToStatus(VerifySchedule(schedule, allreduce, *topology)), OkStatus());
    SimulateOptions options;
    options.size_bytes = 1 << 20;
    EXPECT_GE(Simulate(schedule, allreduce, *topology, options).time_ps,
              BoundOf(*topology, allreduce, 1 << 20).bound_ps);
  }
}

// A table of two parts: rank 2 needs both, over 1 GB/s and 3 GB/s links from their holders, 3 GB/s in all.
TEST(BandwidthBound, CustomTables) {
  const Topology topology = MakeGraph("custom", 3, 1, {{0, 3, 1}, {1, 3, 3}, {3, 2, 3}});
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kCustom;
  spec.custom_name = "two parts";
  spec.ranks = {Rank(0), Rank(1), Rank(2)};
  spec.custom_weights = {2, 1};
  spec.pre = {{Rank(0), PartId(0), {Rank(0)}}, {Rank(1), PartId(1), {Rank(1)}}};
  spec.post = {{Rank(2), PartId(0), {Rank(0)}}, {Rank(2), PartId(1), {Rank(1)}}};
  const Bound bound = BoundOf(topology, Collective::Create(spec).value(), 3'000'000);
  EXPECT_NEAR(bound.bandwidth_ps, 2e9, 1e3);  // 2 MB at 1 GB/s
  EXPECT_EQ(bound.bandwidth_kind, BoundKind::kRelaxed);
}

// A table that describes a named collective has the same bound if that is a cut or a count.
TEST(BandwidthBound, TablesOfNamedCollectives) {
  const Topology torus = MakeGraph("ring", 4, 0, Duplex({{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 0, 1}}));
  const Topology line = MakeGraph("line", 4, 0, Duplex({{0, 1, 1}, {1, 2, 1}, {2, 3, 1}}));
  for (const Topology* const topology : {&torus, &line}) {
    for (CollectiveKind kind :
         {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
          CollectiveKind::kReduce, CollectiveKind::kBroadcast}) {
      const bool rooted = IsRooted(kind);
      const Collective named = MakeCollective(kind, 4, rooted ? std::optional(Rank(0)) : std::nullopt, {});
      CollectiveSpec spec;
      spec.kind = CollectiveKind::kCustom;
      spec.custom_name = "tables";
      spec.ranks = {Rank(0), Rank(1), Rank(2), Rank(3)};
      std::vector<Holding> holdings;
      for (int32_t p = 0; p < named.num_parts(); ++p) {
        spec.custom_weights.push_back(1);
        const auto table = [&](std::vector<TableEntry>& entries) {
          for (const Holding& h : holdings)
            entries.push_back({h.rank, PartId(p), {h.contributions.begin(), h.contributions.end()}});
        };
        named.Before(ChunkId(p), holdings);
        table(spec.pre);
        named.After(ChunkId(p), holdings);
        table(spec.post);
      }
      const Collective tables = Collective::Create(spec).value();
      const Bound expected = BoundOf(*topology, named, 4'000'000);
      const Bound bound = BoundOf(*topology, tables, 4'000'000);
      EXPECT_NEAR(bound.bandwidth_ps, expected.bandwidth_ps, 1e3)
          << ToString(kind) << " " << topology->name();
      EXPECT_EQ(bound.latency_ps, expected.latency_ps);
    }
  }
}

TEST(BandwidthBound, AlltoallvAndSendrecv) {
  const Topology topology = MakeGraph("line", 3, 0, Duplex({{0, 1, 1}, {1, 2, 1}}));
  // 0 -> 1: 1 MB, 0 -> 2: 2 MB, 1 -> 2: 3 MB: 5 MB cross 1 -> 2.
  const Collective alltoallv =
      MakeCollective(CollectiveKind::kAlltoallv, 3, std::nullopt, {0, 1, 2, 0, 0, 3, 0, 0, 0});
  const Bound bound = BoundOf(topology, alltoallv, 5'000'000);
  EXPECT_NEAR(bound.bandwidth_ps, 5e9, 1e3);
  EXPECT_EQ(bound.bandwidth_kind, BoundKind::kLp);
  CollectiveSpec pairs;
  pairs.kind = CollectiveKind::kSendrecv;
  pairs.ranks = {Rank(0), Rank(1), Rank(2)};
  pairs.pairs = {{Rank(0), Rank(2)}, {Rank(1), Rank(2)}, {Rank(2), Rank(2)}};
  EXPECT_NEAR(BoundOf(topology, Collective::Create(pairs).value(), 1'000'000).bandwidth_ps, 2e9, 1e3);
}

TEST(Bound, IsMetButForRounding) {
  struct Case {
    int64_t time_ps, bound_ps;
    bool meets;
  };
  for (const Case& c : std::vector<Case>{{0, 0, true},
                                         {1, 0, true},
                                         {2, 0, false},
                                         {1000, 1000, true},
                                         {1002, 1000, false},
                                         {1'000'000'001, 1'000'000'000, true},
                                         {5'000'000'000'004, 5'000'000'000'000, true},
                                         {5'000'000'006'000, 5'000'000'000'000, false}}) {
    Bound bound;
    bound.bound_ps = c.bound_ps;
    EXPECT_EQ(MeetsBound(c.time_ps, bound), c.meets) << c.time_ps;
  }
}

}  // namespace
}  // namespace xccl
