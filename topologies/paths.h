// Which ranks can reach which without passing a GPU, and how well: the routes that one transfer may take.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

// All GPUs next to each GPU (joined by a path through no other GPU) with the best such path: largest
// bottleneck bandwidth first, then least latency, then fewest links, then lowest link ids. `Widest` ignores
// order of latency.
struct Neighbour {
  Rank rank;
  std::vector<LinkId> path;
  int64_t bandwidth_bytes_per_s = 0;  // of the narrowest link on it
  int64_t latency_ps = 0;             // sum along it
};
// neighbours[r] sorted by rank. Cost: one search a rank over the non-GPU nodes it reaches.
std::vector<std::vector<Neighbour>> GpuNeighbours(const Topology& topology);

// Least sum of (latency + overhead + link_ps(link)) from one node to all, through any node; nullopt:
// unreachable.
std::vector<std::optional<int64_t>> LeastLatencyFrom(const Topology& topology, NodeId from);
std::vector<std::optional<int64_t>> LeastLatencyTo(const Topology& topology, NodeId to);

}  // namespace xccl
