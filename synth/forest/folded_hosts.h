// A machine with its hosts folded up: each host is one rank, and each class of alike fabric switches is one
// switch. Trees between hosts are packed on the folded machine if the machine itself has too many links for a
// linear program. synth/forest/unfolder.h turns these trees into trees between the ranks of the machine.
//
// Two switches are of one class if they join the same hosts and the same classes, whatever the rates. For
// example, all leaf switches above the same hosts are a class, and so are all spine switches above them. A
// place is a host or a class: one node of the folded machine.
#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl::forest {

// A link of `topology` stands for all cables from one place to another. Its bandwidth is the sum of the
// cables' rates. The rate of a host's cable is at most that at which the host's nearest GPUs reach the cable.
// The latency is the largest of any cable, including the paths to these GPUs.
struct FoldedHosts {
  Topology topology;               // rank h is the h-th host that has a GPU
  std::vector<Rank> host_of_rank;  // by rank of the machine
  std::vector<NodeId> place;       // by node of the machine: its place, as a node of `topology`
};

// Returns nullopt if there are fewer than two hosts with GPUs, or if the folded topology is not valid. Cost:
// for each cable of a host a search inside the host. The refinement of classes looks at all links as often as
// the fabric has levels.
std::optional<FoldedHosts> FoldHosts(const Topology& machine);

// A path between a node of a host and one of the host's nearest GPUs. It passes no other GPU and no node of
// another place. The nearest GPUs have the widest path and, among equally wide paths, the least latency.
struct NearGpu {
  NodeId gpu;
  std::vector<LinkId> path;  // in the order of the data; empty if the node is the GPU
};
struct NearGpus {
  std::vector<NearGpu> gpus;          // by node id; empty if there is no path between the node and a GPU
  int64_t bandwidth_bytes_per_s = 0;  // of the slowest link of a path; the largest int64_t if `node` is a GPU
  int64_t latency_ps = 0;
};
// Way: from the GPUs to the node, or from the node to the GPUs.
enum class Way : uint8_t { kOut, kIn };
// Returns the paths between `node` and the nearest GPUs of its host.
NearGpus NearestGpus(const Topology& machine, const std::vector<NodeId>& place, NodeId node, Way way);

}  // namespace xccl::forest
