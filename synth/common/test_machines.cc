#include "synth/common/test_machines.h"

#include <fmt/core.h>

#include <array>
#include <utility>

namespace xccl::testing {
namespace {

constexpr int64_t kBandwidth = 10'000'000'000, kLatency = 1'000'000;

TopologySpec Gpus(int32_t ranks) {
  TopologySpec spec;
  spec.name = "test";
  spec.hosts.push_back({"host"});
  for (int32_t r = 0; r < ranks; ++r) spec.nodes.push_back({NodeKind::kGpu, std::to_string(r), HostId(0)});
  return spec;
}

void Cable(TopologySpec& spec, int32_t a, int32_t b, int64_t bandwidth = kBandwidth,
           int64_t latency = kLatency) {
  spec.links.push_back({NodeId(a), NodeId(b), bandwidth, latency, 0});
  spec.links.push_back({NodeId(b), NodeId(a), bandwidth, latency, 0});
}

Topology Create(TopologySpec spec) {
  StatusOr<Topology> made = Topology::Create(std::move(spec));
  XCCL_CHECK(made.ok());
  return std::move(made).value();
}

}  // namespace

Topology MakeGrid(const std::vector<int32_t>& dims, bool wrap) {
  int32_t n = 1;
  for (int32_t d : dims) n *= d;
  TopologySpec spec = Gpus(n);
  for (int32_t v = 0; v < n; ++v) {
    int32_t stride = n;
    for (int32_t d : dims) {
      stride /= d;
      const int32_t x = v / stride % d;
      if (x + 1 < d) Cable(spec, v, v + stride);
      if (x + 1 == d && wrap && d > 2) Cable(spec, v, v - x * stride);
    }
  }
  return Create(std::move(spec));
}

Topology MakeRing(int32_t ranks) { return MakeGrid({ranks}, true); }

Topology MakeFullMesh(int32_t ranks) {
  TopologySpec spec = Gpus(ranks);
  for (int32_t a = 0; a < ranks; ++a)
    for (int32_t b = a + 1; b < ranks; ++b) Cable(spec, a, b);
  return Create(std::move(spec));
}

Topology MakeSwitch(int32_t ranks) {
  TopologySpec spec = Gpus(ranks);
  spec.nodes.push_back({NodeKind::kSwitch, "switch", HostId(0)});
  for (int32_t a = 0; a < ranks; ++a) Cable(spec, a, ranks);
  return Create(std::move(spec));
}

Topology MakeHypercube(int32_t dim) {
  return MakeGrid(std::vector<int32_t>(static_cast<size_t>(dim), 2), false);
}

Topology MakeDgx1() {
  TopologySpec spec = Gpus(8);
  for (const auto& [a, b, links] : std::vector<std::array<int32_t, 3>>{{0, 1, 1},
                                                                       {0, 2, 1},
                                                                       {0, 3, 2},
                                                                       {0, 4, 2},
                                                                       {1, 2, 2},
                                                                       {1, 3, 1},
                                                                       {1, 5, 2},
                                                                       {2, 3, 2},
                                                                       {2, 6, 1},
                                                                       {3, 7, 1},
                                                                       {4, 5, 1},
                                                                       {4, 6, 1},
                                                                       {4, 7, 2},
                                                                       {5, 6, 2},
                                                                       {5, 7, 1},
                                                                       {6, 7, 2}})
    Cable(spec, a, b, 25'000'000'000 * links, 700'000);
  return Create(std::move(spec));
}

Topology MakeCluster(int32_t hosts, int32_t gpus) {
  TopologySpec spec;
  spec.name = "cluster";
  const auto add = [&](NodeKind kind, const std::string& id, std::optional<HostId> host) {
    spec.nodes.push_back({kind, id, host});
    return static_cast<int32_t>(spec.nodes.size()) - 1;
  };
  const int32_t fabric = add(NodeKind::kSwitch, "fabric", std::nullopt);
  for (int32_t h = 0; h < hosts; ++h) {
    spec.hosts.push_back({fmt::format("h{}", h)});
    const int32_t inside = add(NodeKind::kSwitch, "nvswitch", HostId(h));
    for (int32_t g = 0; g < gpus; ++g) {
      const int32_t gpu = add(NodeKind::kGpu, std::to_string(g), HostId(h));
      const int32_t nic = add(NodeKind::kNic, std::to_string(g), HostId(h));
      Cable(spec, gpu, inside, 100'000'000'000);
      Cable(spec, gpu, nic);
      Cable(spec, nic, fabric);
    }
  }
  return Create(std::move(spec));
}

Topology MakeGraph(int32_t ranks, const std::vector<std::pair<int32_t, int32_t>>& cables) {
  TopologySpec spec = Gpus(ranks);
  for (const auto& [a, b] : cables) Cable(spec, a, b);
  return Create(std::move(spec));
}

Topology MakeLine(const std::vector<int64_t>& bandwidths_gb_per_s, const std::vector<int32_t>& switches) {
  const auto links = static_cast<int32_t>(bandwidths_gb_per_s.size());
  TopologySpec spec;
  spec.name = "line";
  for (int32_t n = 0; n <= links; ++n) spec.nodes.emplace_back().id = std::to_string(n);
  for (const int32_t n : switches) spec.nodes[static_cast<size_t>(n)].kind = NodeKind::kSwitch;
  for (int32_t n = 0; n < links; ++n)
    spec.links.push_back(
        {.from = NodeId(n),
         .to = NodeId(n + 1),
         .bandwidth_bytes_per_s = bandwidths_gb_per_s[static_cast<size_t>(n)] * 1'000'000'000,
         .latency_ps = 1});
  return Topology::Create(std::move(spec)).value();
}

Topology MakeDigraph(int32_t ranks, const std::vector<std::pair<int32_t, int32_t>>& links) {
  TopologySpec spec = Gpus(ranks);
  for (const auto& [a, b] : links) spec.links.push_back({NodeId(a), NodeId(b), kBandwidth, kLatency, 0});
  return Create(std::move(spec));
}

std::vector<Machine> Machines() {
  std::vector<Machine> machines;
  for (int32_t n : {1, 2, 3, 5, 6, 7, 8, 16}) {
    machines.push_back({fmt::format("switch {}", n), MakeSwitch(n)});
    machines.push_back({fmt::format("full mesh {}", n), MakeFullMesh(n)});
    machines.push_back({fmt::format("ring {}", n), MakeRing(n)});
  }
  machines.push_back({"torus 4x4", MakeGrid({4, 4}, true)});
  machines.push_back({"torus 3x5", MakeGrid({3, 5}, true)});
  machines.push_back({"torus 2x2x3", MakeGrid({2, 2, 3}, true)});
  machines.push_back({"mesh 4x4", MakeGrid({4, 4}, false)});
  machines.push_back({"mesh 3x4", MakeGrid({3, 4}, false)});
  machines.push_back({"hypercube 3", MakeHypercube(3)});
  machines.push_back({"hypercube 4", MakeHypercube(4)});
  machines.push_back({"dgx1", MakeDgx1()});
  machines.push_back({"cluster 2x4", MakeCluster(2, 4)});
  machines.push_back({"cluster 3x3", MakeCluster(3, 3)});
  return machines;
}

CollectiveSpec SpecOf(CollectiveKind kind, std::vector<Rank> ranks) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = std::move(ranks);
  const size_t n = spec.ranks.size();
  switch (kind) {
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      spec.root = spec.ranks[n / 2];
      break;
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kReduceScatterv:
      for (size_t i = 0; i < n; ++i) spec.counts.push_back(static_cast<int64_t>(i % 3));
      if (n == 1) spec.counts[0] = 1;
      break;
    case CollectiveKind::kAlltoallv:
      for (size_t i = 0; i < n * n; ++i) spec.counts.push_back(static_cast<int64_t>(i * 7 % 4));
      break;
    case CollectiveKind::kSendrecv:
      for (size_t i = 0; i < n; ++i)
        if (n > 1) spec.pairs.push_back({spec.ranks[i], spec.ranks[(i + n / 2) % n]});
      break;
    default:
      break;
  }
  return spec;
}

std::vector<std::vector<Rank>> MemberLists(int32_t ranks) {
  std::vector<std::vector<Rank>> lists = {AllRanks(ranks)};
  if (ranks >= 6) {
    lists.push_back({Rank(5), Rank(0), Rank(3)});
    lists.push_back({Rank(1), Rank(0), Rank(4), Rank(5)});
  }
  return lists;
}

}  // namespace xccl::testing
