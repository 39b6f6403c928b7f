// Which ranks can reach each other without passing through another GPU, and by which path: the routes that
// one transfer may take. Also distances over the whole machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

// A GPU that a path through no other GPU reaches, and the best such path: largest bottleneck bandwidth
// first, then least latency and overhead, then fewest links, then lowest link ids from the start.
struct Neighbour {
  Rank rank;
  std::span<const LinkId> path;       // points into the NeighbourTable
  int64_t bandwidth_bytes_per_s = 0;  // the bandwidth of the slowest link on it
  int64_t latency_ps = 0;             // sum along it
};

// The neighbours of some or all ranks in flat rows. Spans and paths live as long as the table; moving it
// keeps them.
class NeighbourTable {
 public:
  NeighbourTable() = default;
  NeighbourTable(const NeighbourTable&) = delete;
  NeighbourTable& operator=(const NeighbourTable&) = delete;
  NeighbourTable(NeighbourTable&&) = default;
  NeighbourTable& operator=(NeighbourTable&&) = default;

  size_t size() const { return first_.size() - 1; }
  // Row `i`, sorted by rank.
  std::span<const Neighbour> operator[](size_t i) const {
    return std::span(items_).subspan(first_[i], first_[i + 1] - first_[i]);
  }
  std::span<const Neighbour> operator[](Rank r) const { return (*this)[r.index()]; }
  // The entry for `to` in row `i`, or null if it is no neighbour. Binary search.
  const Neighbour* Find(size_t i, Rank to) const;

 private:
  friend class NeighbourSearch;
  std::vector<Neighbour> items_;
  std::vector<LinkId> paths_;
  std::vector<size_t> first_ = {0};
};

// Row r holds the neighbours of rank r. Cost: per rank, one search over the non-GPU nodes that it reaches.
NeighbourTable GpuNeighbours(const Topology& topology);
// One row: the neighbours of `rank`.
NeighbourTable GpuNeighboursOf(const Topology& topology, Rank rank);

// The least sum of link costs to every node from the nearest of `from`, through any nodes, at most kForeverPs
// (base/units.h); nullopt: unreachable. A link costs link_ps[its id], or latency + overhead where link_ps is
// empty. Requires: 0 <= costs <= kForeverPs.
std::vector<std::optional<int64_t>> LeastLatencyFrom(const Topology& topology,
                                                     const std::vector<NodeId>& from,
                                                     std::span<const int64_t> link_ps = {});
// The least sum of latency + overhead from every node to one.
std::vector<std::optional<int64_t>> LeastLatencyTo(const Topology& topology, NodeId to);

// The fewest transfers from (to) one rank to every other, by rank; nullopt: unreachable. A path through
// switches, NICs and CPUs counts as one, and each GPU between adds one. Linear in nodes + links.
std::vector<std::optional<int32_t>> RankHopsFrom(const Topology& topology, Rank from);
std::vector<std::optional<int32_t>> RankHopsTo(const Topology& topology, Rank to);
// The largest of RankHopsFrom over all pairs, or nullopt if some rank cannot reach another. Cost: ranks ×
// links.
std::optional<int32_t> RankDiameter(const Topology& topology);

}  // namespace xccl
