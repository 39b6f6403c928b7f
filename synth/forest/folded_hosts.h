// A machine with its hosts folded up: each host is one rank, and each class of alike fabric switches is one
// switch. Trees between hosts are packed on it where the machine itself has too many links for a linear
// program. synth/forest/unfolder.h turns these trees into trees between the ranks of the machine.
//
// Two switches are of one class if they join the same hosts and the same classes, whatever the rates. The
// leaves of one group of rails are such a class, and so are all spines above them.
#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl::forest {

// A link of `topology` has the bandwidth of all cables that it stands for: what each cable carries between
// the fabric and the nearest GPUs of its host. It has the latency of the slowest of them.
struct FoldedHosts {
  Topology topology;               // rank h is the h-th host that has a GPU
  std::vector<Rank> host_of_rank;  // by rank of the machine
  std::vector<NodeId> place;       // by node of the machine: the node that it is part of
};

// Returns nullopt if there are fewer than two hosts with GPUs. Linear, except for the refinement of classes,
// which looks at all links as often as the fabric has levels.
std::optional<FoldedHosts> FoldHosts(const Topology& machine);

// Paths between one node of a host and the nearest GPUs of its host, through no other GPU and no node of
// another place. The nearest GPUs are those with the widest path, and of equally wide ones with the least
// latency.
struct NearGpu {
  NodeId gpu;
  std::vector<LinkId> path;  // in the order of the data; empty if the node is the GPU
};
struct NearGpus {
  std::vector<NearGpu> gpus;          // by node id; empty if no GPU can reach the node
  int64_t bandwidth_bytes_per_s = 0;  // of the slowest link of a path; the largest int64_t if `node` is a GPU
  int64_t latency_ps = 0;
};
enum class Way : uint8_t { kOut, kIn };  // from the GPUs to the node, or from the node to the GPUs
NearGpus NearestGpus(const Topology& machine, const std::vector<NodeId>& place, NodeId node, Way way);

}  // namespace xccl::forest
