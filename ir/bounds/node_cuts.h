// Families of cuts that are quick to list: cuts around groups of nodes, and cuts along sweeps over all nodes.
// The bytes that must cross a cut ÷ the bandwidth across it is a lower bound on the time of a collective.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/topology.h"

namespace xccl {

// The number of each node's group; negative if the node is in no group. Group numbers may have gaps.
using NodeGroups = std::vector<int32_t>;

NodeGroups EachGpu(const Topology& topology);
NodeGroups EachHost(const Topology& topology);
// Returns one grouping for each bandwidth except the least; the fastest 32 at most, fastest first. The groups
// are the components that links of at least the bandwidth join. Components without a GPU are not groups.
std::vector<NodeGroups> JoinedByFastLinks(const Topology& topology);

// Amounts, in bytes or bytes per second, that leave and enter a group.
struct OutAndIn {
  double out = 0, in = 0;
};
// Returns the bandwidth of the links out of and into each group, by group number.
std::vector<OutAndIn> BandwidthAround(const Topology& topology, const NodeGroups& group_of);

// Returns the bandwidth that all transfers from group to group share: of all links out of groups or of all
// links into groups, whichever is less. Returns 0 if a node in no group can copy or sum, because the
// transfers cannot be counted then.
double PassBandwidth(const Topology& topology, const NodeGroups& group_of);

// Returns the longest time in seconds that a group's bytes take over the bandwidth around the group.
double SecondsAround(const std::vector<OutAndIn>& bytes, const std::vector<OutAndIn>& bandwidth);

// Returns lists of keys for sweeps. Each list has one key for every node, and a sweep cuts between nodes with
// different keys. The keys of the first list are in document order. In each other list, the key is the node's
// number of hops to one landmark minus its number of hops to another. The cuts of the other lists slice a
// grid along its dimensions.
std::vector<std::vector<int32_t>> SweepKeys(const Topology& topology);

// Adds up bytes and bandwidth across the cuts of one sweep. Keys in ascending order have the places 0, 1,
// ...; the nodes at places 0..i are on the low side of cut i. Cost: linear in the links and in the calls of
// Add().
class NodeSweep {
 public:
  NodeSweep(const Topology& topology, const std::vector<int32_t>& key);
  int32_t PlaceOf(int32_t node) const { return place_[static_cast<size_t>(node)]; }
  // Adds `bytes` bytes that must cross every cut between the places `from` and `to`.
  void Add(int32_t from, int32_t to, double bytes) { Between(from, to, &Change::bytes, bytes); }
  // Returns the longest time in seconds that the bytes across a cut take.
  double Seconds() const;

 private:
  struct Change {
    double bytes = 0, bandwidth = 0;
  };
  void Between(int32_t from, int32_t to, double Change::*what, double amount);

  std::vector<int32_t> place_;     // by node
  std::vector<Change> up_, down_;  // by place: change of the amounts across from the cut before
};

}  // namespace xccl
