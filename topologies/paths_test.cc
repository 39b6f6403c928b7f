#include "topologies/paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "base/random.h"

namespace xccl {
namespace {

struct TestLink {
  int32_t from, to;
  int64_t bandwidth = 1, latency = 0, overhead = 0;
};

// One node per letter: g GPU, s switch, n NIC, c CPU.
Topology Make(std::string_view kinds, const std::vector<TestLink>& links) {
  TopologySpec spec;
  spec.name = "test";
  for (char kind : kinds) {
    Node node;
    node.kind = kind == 'g'   ? NodeKind::kGpu
                : kind == 's' ? NodeKind::kSwitch
                : kind == 'n' ? NodeKind::kNic
                              : NodeKind::kCpu;
    node.id = std::to_string(spec.nodes.size());
    spec.nodes.push_back(node);
  }
  for (const TestLink& l : links)
    spec.links.push_back(Link{NodeId(l.from), NodeId(l.to), l.bandwidth, l.latency, l.overhead});
  StatusOr<Topology> topology = Topology::Create(std::move(spec));
  EXPECT_TRUE(topology.ok()) << topology.status().message();
  return *topology;
}

// "1:0.3 w5 l20" for each neighbour: rank, links, bandwidth, latency.
std::string Show(std::span<const Neighbour> row) {
  std::string text;
  for (const Neighbour& n : row) {
    text += (text.empty() ? "" : " | ") + std::to_string(n.rank.value) + ":";
    for (size_t i = 0; i < n.path.size(); ++i) text += (i ? "." : "") + std::to_string(n.path[i].value);
    text += " w" + std::to_string(n.bandwidth_bytes_per_s) + " l" + std::to_string(n.latency_ps);
  }
  return text;
}

TEST(GpuNeighbours, Table) {
  struct Case {
    const char* name;
    const char* kinds;
    std::vector<TestLink> links;
    std::string expected;  // row 0
  };
  const std::vector<Case> cases = {
      {"direct link", "gg", {{0, 1, 5, 7}}, "1:0 w5 l7"},
      {"one way only", "gg", {{1, 0, 5, 7}}, ""},
      {"no links", "gg", {}, ""},
      {"never through a gpu", "ggg", {{0, 1}, {1, 2}}, "1:0 w1 l0"},
      {"never back to itself", "gs", {{0, 1}, {1, 0}}, ""},
      {"through a switch", "gsg", {{0, 1, 5, 7}, {1, 2, 4, 2}}, "1:0.1 w4 l9"},
      {"through nic, cpu, switch", "gcnsg", {{0, 1}, {1, 2}, {2, 3}, {3, 4}}, "1:0.1.2.3 w1 l0"},
      {"widest wins over latency", "gsg", {{0, 2, 5, 1}, {0, 1, 6, 9}, {1, 2, 6, 9}}, "1:1.2 w6 l18"},
      {"least latency among the widest", "gsg", {{0, 2, 6, 20}, {0, 1, 6, 9}, {1, 2, 6, 9}}, "1:1.2 w6 l18"},
      {"a wide detour before a narrow link does not pay",
       "gssg",
       {{0, 1, 9, 5}, {1, 2, 9, 5}, {0, 2, 3, 1}, {2, 3, 3, 1}},
       "1:2.3 w3 l2"},
      {"fewest links at equal latency", "gsg", {{0, 1, 6, 1}, {1, 2, 6, 1}, {0, 2, 6, 2}}, "1:2 w6 l2"},
      {"lowest ids of parallel links", "gsg", {{0, 1}, {0, 1}, {1, 2}, {1, 2}}, "1:0.2 w1 l0"},
      {"lowest first id wins, not the lowest last", "gssg", {{0, 1}, {2, 3}, {0, 2}, {1, 3}}, "1:0.3 w1 l0"},
      {"several neighbours by rank",
       "gsggg",
       {{1, 4}, {1, 3}, {0, 1}, {0, 2, 8}},
       "1:3 w8 l0 | 2:2.1 w1 l0 | 3:2.0 w1 l0"},
  };
  for (const Case& c : cases) {
    const Topology topology = Make(c.kinds, c.links);
    const NeighbourTable table = GpuNeighbours(topology);
    ASSERT_EQ(table.size(), static_cast<size_t>(topology.num_ranks()));
    EXPECT_EQ(Show(table[0]), c.expected) << c.name;
    EXPECT_EQ(Show(GpuNeighboursOf(topology, Rank(0))[0]), c.expected) << c.name;
  }
}

TEST(GpuNeighbours, FindAndMove) {
  NeighbourTable table = GpuNeighbours(Make("ggg", {{0, 2, 5}, {2, 0, 6}}));
  const NeighbourTable moved = std::move(table);
  ASSERT_NE(moved.Find(0, Rank(2)), nullptr);
  EXPECT_EQ(moved.Find(0, Rank(2))->path[0], LinkId(0));
  EXPECT_EQ(moved.Find(0, Rank(1)), nullptr);
  EXPECT_EQ(moved.Find(2, Rank(0))->bandwidth_bytes_per_s, 6);
}

Topology RandomTopology(Random& random) {
  const size_t nodes = 2 + random.Below(6);
  std::string kinds = "g";
  while (kinds.size() < nodes) kinds += "gsnc"[random.Below(4)];
  std::vector<TestLink> links(random.Below(3 * nodes));
  for (TestLink& link : links) {
    link.from = static_cast<int32_t>(random.Below(nodes));
    link.to = static_cast<int32_t>((static_cast<size_t>(link.from) + 1 + random.Below(nodes - 1)) % nodes);
    link.bandwidth = 1 + static_cast<int64_t>(random.Below(3));
    link.latency = static_cast<int64_t>(random.Below(3));
    link.overhead = static_cast<int64_t>(random.Below(2));
  }
  return Make(kinds, links);
}

// All simple paths, depth-first.
void BestPaths(const Topology& t, NodeId at, std::vector<LinkId>& path, std::vector<bool>& seen,
               const std::function<void(NodeId, const std::vector<LinkId>&)>& visit) {
  for (LinkId l : t.Out(at)) {
    const NodeId to = t.link(l).to;
    if (seen[to.index()]) continue;
    path.push_back(l);
    visit(to, path);
    if (!t.IsGpu(to)) {
      seen[to.index()] = true;
      BestPaths(t, to, path, seen, visit);
      seen[to.index()] = false;
    }
    path.pop_back();
  }
}

TEST(GpuNeighbours, AgreesWithAllSimplePaths) {
  Random random(7);
  for (int trial = 0; trial < 500; ++trial) {
    const Topology t = RandomTopology(random);
    const NeighbourTable table = GpuNeighbours(t);
    const auto cost = [&](std::span<const LinkId> path) {
      int64_t sum = 0;
      for (const LinkId l : path) sum += t.link(l).latency_ps + t.link(l).overhead_ps;
      return sum;
    };
    for (int32_t r = 0; r < t.num_ranks(); ++r) {
      using Key = std::tuple<int64_t, int64_t, size_t, std::vector<LinkId>>;
      std::vector<std::optional<Key>> best(static_cast<size_t>(t.num_ranks()));
      std::vector<bool> seen(static_cast<size_t>(t.num_nodes()));
      seen[t.NodeOf(Rank(r)).index()] = true;
      std::vector<LinkId> path;
      BestPaths(t, t.NodeOf(Rank(r)), path, seen, [&](NodeId to, const std::vector<LinkId>& p) {
        if (!t.IsGpu(to)) return;
        int64_t width = t.link(p[0]).bandwidth_bytes_per_s;
        for (LinkId l : p) width = std::min(width, t.link(l).bandwidth_bytes_per_s);
        std::optional<Key>& known = best[t.RankOf(to)->index()];
        const Key key(-width, cost(p), p.size(), p);
        if (!known || key < *known) known = key;
      });
      for (int32_t to = 0; to < t.num_ranks(); ++to) {
        const Neighbour* found = table.Find(static_cast<size_t>(r), Rank(to));
        ASSERT_EQ(found != nullptr, best[to].has_value()) << "trial " << trial;
        if (found == nullptr) continue;
        const Key key(-found->bandwidth_bytes_per_s, cost(found->path), found->path.size(),
                      std::vector<LinkId>(found->path.begin(), found->path.end()));
        int64_t latency = 0;
        for (const LinkId l : found->path) latency += t.link(l).latency_ps;
        ASSERT_EQ(found->latency_ps, latency);
        ASSERT_TRUE(key == *best[to]) << "trial " << trial << ": " << Show(table[static_cast<size_t>(r)]);
      }
    }
  }
}

TEST(LeastLatency, AgreesWithFloydWarshall) {
  Random random(8);
  for (int trial = 0; trial < 200; ++trial) {
    const Topology t = RandomTopology(random);
    const auto n = static_cast<size_t>(t.num_nodes());
    constexpr int64_t kFar = 1'000'000;
    std::vector<int64_t> cost;
    for (const Link& link : t.spec().links)
      cost.push_back(trial % 2 == 0 ? link.latency_ps + link.overhead_ps : link.bandwidth_bytes_per_s);
    std::vector<std::vector<int64_t>> d(n, std::vector<int64_t>(n, kFar));
    for (size_t i = 0; i < n; ++i) d[i][i] = 0;
    for (size_t l = 0; l < cost.size(); ++l) {
      const Link& link = t.spec().links[l];
      d[link.from.index()][link.to.index()] = std::min(d[link.from.index()][link.to.index()], cost[l]);
    }
    for (size_t k = 0; k < n; ++k)
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) d[i][j] = std::min(d[i][j], d[i][k] + d[k][j]);
    const std::span<const int64_t> costs = trial % 2 == 0 ? std::span<const int64_t>() : cost;
    for (size_t i = 0; i < n; ++i) {
      const auto from = LeastLatencyFrom(t, {NodeId(static_cast<int64_t>(i))}, costs);
      const auto to = LeastLatencyTo(t, NodeId(static_cast<int64_t>(i)));
      for (size_t j = 0; j < n; ++j) {
        ASSERT_EQ(from[j].value_or(kFar), d[i][j]);
        if (trial % 2 == 0) {
          ASSERT_EQ(to[j].value_or(kFar), d[j][i]);
        }
      }
    }
  }
}

TEST(RankHops, SwitchesAreFreeAndGpusCount) {
  // gpu0 - switch1 - gpu2 -> gpu3, and gpu4 alone.
  const Topology t = Make("gsggg", {{0, 1}, {1, 0}, {1, 2}, {2, 1}, {2, 3}});
  using Hops = std::vector<std::optional<int32_t>>;
  EXPECT_EQ(RankHopsFrom(t, Rank(0)), (Hops{0, 1, 2, std::nullopt}));
  EXPECT_EQ(RankHopsTo(t, Rank(2)), (Hops{2, 1, 0, std::nullopt}));
  EXPECT_EQ(RankHopsTo(t, Rank(0)), (Hops{0, 1, std::nullopt, std::nullopt}));
  EXPECT_EQ(RankDiameter(t), std::nullopt);
}

TEST(RankHops, DiameterOfARing) {
  std::vector<TestLink> links;
  for (int32_t i = 0; i < 9; ++i) {
    links.push_back({i, (i + 1) % 9});
    links.push_back({(i + 1) % 9, i});
  }
  EXPECT_EQ(RankDiameter(Make("ggggggggg", links)), 4);
  EXPECT_EQ(RankDiameter(Make("g", {})), 0);
}

// One switch per 64 GPUs, under spines: memory and time are near linear in the pairs.
TEST(GpuNeighbours, TwoLevelTreeOf512Gpus) {
  std::string kinds(512, 'g');
  std::vector<TestLink> links;
  const auto duplex = [&](int32_t a, int32_t b, int64_t bandwidth) {
    links.push_back({a, b, bandwidth, 10});
    links.push_back({b, a, bandwidth, 10});
  };
  for (int32_t leaf = 0; leaf < 8; ++leaf) {
    kinds += 's';
    for (int32_t g = 0; g < 64; ++g) duplex(leaf * 64 + g, 512 + leaf, 5);
  }
  for (int32_t spine = 0; spine < 8; ++spine) {
    kinds += 's';
    for (int32_t leaf = 0; leaf < 8; ++leaf) duplex(512 + leaf, 520 + spine, 8);
  }
  const NeighbourTable table = GpuNeighbours(Make(kinds, links));
  for (size_t r = 0; r < 512; ++r) ASSERT_EQ(table[r].size(), 511u);
  EXPECT_EQ(table.Find(0, Rank(1))->path.size(), 2u);
  EXPECT_EQ(table.Find(0, Rank(511))->path.size(), 4u);
  EXPECT_EQ(table.Find(0, Rank(511))->latency_ps, 40);
}

// A grid of 120 x 120 switches, with a width for every cable. All but one row of it leads nowhere.
TEST(GpuNeighbours, WidthsThatLeadToNoGpuCostNoSearch) {
  constexpr int32_t kSide = 120;
  std::vector<TestLink> links;
  int64_t width = 2 * kSide * kSide;
  const auto duplex = [&](int32_t a, int32_t b) {
    links.push_back({a, b, width});
    links.push_back({b, a, width--});
  };
  for (int32_t row = 0; row < kSide; ++row)
    for (int32_t column = 0; column < kSide; ++column) {
      const int32_t at = row * kSide + column;
      if (column + 1 < kSide) duplex(at, at + 1);
      if (row + 1 < kSide) duplex(at, at + kSide);
    }
  std::string kinds(kSide * kSide, 's');
  kinds.front() = kinds.back() = 'g';
  const NeighbourTable table = GpuNeighbours(Make(kinds, links));
  ASSERT_EQ(table[0].size(), 1u);
  EXPECT_EQ(table[0][0].path.size(), 2u * (kSide - 1));
  EXPECT_EQ(table[0][0].bandwidth_bytes_per_s, table[1][0].bandwidth_bytes_per_s);
}

}  // namespace
}  // namespace xccl
