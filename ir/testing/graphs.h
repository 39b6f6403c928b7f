// Small topologies and collectives for tests, each written in one line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "topologies/topology.h"

namespace xccl::testing {

inline constexpr int64_t kGb = 1'000'000'000;

struct Edge {
  int32_t from, to;
  int64_t gb_per_s = 1, latency_ns = 0, overhead_ns = 0;
};

// Nodes 0..gpus-1 are GPUs; the rest are switches.
inline Topology MakeGraph(const std::string& name, int32_t gpus, int32_t switches,
                          const std::vector<Edge>& edges) {
  TopologySpec spec;
  spec.name = name;
  for (int32_t n = 0; n < gpus + switches; ++n) {
    Node node;
    node.kind = n < gpus ? NodeKind::kGpu : NodeKind::kSwitch;
    node.id = std::to_string(n);
    spec.nodes.push_back(node);
  }
  for (const Edge& e : edges)
    spec.links.push_back(
        {NodeId(e.from), NodeId(e.to), e.gb_per_s * kGb, e.latency_ns * 1000, e.overhead_ns * 1000});
  return Topology::Create(spec).value();
}

// Both directions of each edge.
inline std::vector<Edge> Duplex(const std::vector<Edge>& edges) {
  std::vector<Edge> both;
  for (const Edge& e : edges) {
    both.push_back(e);
    both.push_back({e.to, e.from, e.gb_per_s, e.latency_ns, e.overhead_ns});
  }
  return both;
}

// Rows × columns GPUs, row-major; a dimension of 2 wraps over one cable.
inline Topology MakeGrid(const std::string& name, int32_t rows, int32_t columns, bool wrap,
                         int64_t gb_per_s = 1, int64_t latency_ns = 0) {
  std::vector<Edge> edges;
  const auto at = [&](int32_t r, int32_t c) { return (r % rows) * columns + c % columns; };
  for (int32_t r = 0; r < rows; ++r) {
    for (int32_t c = 0; c < columns; ++c) {
      if (c + 1 < columns || (wrap && columns > 2))
        edges.push_back({at(r, c), at(r, c + 1), gb_per_s, latency_ns, 0});
      if (r + 1 < rows || (wrap && rows > 2))
        edges.push_back({at(r, c), at(r + 1, c), gb_per_s, latency_ns, 0});
    }
  }
  return MakeGraph(name, rows * columns, 0, Duplex(edges));
}

inline Collective MakeCollective(CollectiveKind kind, int32_t ranks, std::optional<Rank> root = std::nullopt,
                                 std::vector<int64_t> counts = {}) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  spec.root = root;
  spec.counts = std::move(counts);
  return Collective::Create(spec).value();
}

inline std::vector<LinkId> Links(const std::vector<int32_t>& ids) {
  std::vector<LinkId> links;
  for (int32_t id : ids) links.push_back(LinkId(id));
  return links;
}

}  // namespace xccl::testing
