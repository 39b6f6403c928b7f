// Which ranks can reach which without passing a GPU, and how well: the routes that one transfer may take; and
// distances over the whole machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

// A GPU next to another (joined by a path through no other GPU) with the best such path: largest bottleneck
// bandwidth first, then least latency, then fewest links, then lowest link ids from the start.
struct Neighbour {
  Rank rank;
  std::span<const LinkId> path;       // points into the NeighbourTable
  int64_t bandwidth_bytes_per_s = 0;  // of the narrowest link on it
  int64_t latency_ps = 0;             // sum along it
};

// Neighbours of some or all ranks, flat. Spans and paths live as long as the table; a move keeps them.
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
  // Row `i`'s entry for `to`, or null: not next to each other. Binary search.
  const Neighbour* Find(size_t i, Rank to) const;

 private:
  friend class NeighbourSearch;
  std::vector<Neighbour> items_;
  std::vector<LinkId> paths_;
  std::vector<size_t> first_ = {0};
};

// Row r: the neighbours of rank r. Cost: one search a rank over the non-GPU nodes that it reaches.
NeighbourTable GpuNeighbours(const Topology& topology);
// One row: the neighbours of this rank alone.
NeighbourTable GpuNeighboursOf(const Topology& topology, Rank rank);

// Least sum of link costs from one node to all, through any node; nullopt: unreachable. A link costs
// link_ps[its id], or latency + overhead where link_ps is empty. Requires: costs >= 0, sums within int64.
std::vector<std::optional<int64_t>> LeastLatencyFrom(const Topology& topology, NodeId from,
                                                     std::span<const int64_t> link_ps = {});
std::vector<std::optional<int64_t>> LeastLatencyTo(const Topology& topology, NodeId to,
                                                   std::span<const int64_t> link_ps = {});

// Fewest transfers from (to) one rank to every other: a path through switches, NICs and CPUs counts one, and
// each GPU on the way one more. By rank; nullopt: unreachable. Linear in nodes + links.
std::vector<std::optional<int32_t>> RankHopsFrom(const Topology& topology, Rank from);
std::vector<std::optional<int32_t>> RankHopsTo(const Topology& topology, Rank to);
// Largest of RankHopsFrom over all pairs; nullopt: some rank cannot reach some other. Ranks × links.
std::optional<int32_t> RankDiameter(const Topology& topology);

}  // namespace xccl
