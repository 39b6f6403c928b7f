// Families of cuts that are quick to list: around groups of nodes, and along sweeps over the nodes. The bytes
// that must cross a cut, over the bandwidth across it, bound the time of a collective.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/topology.h"

namespace xccl {

// By node: the number of its group, dense or not; negative: in none.
using NodeGroups = std::vector<int32_t>;

NodeGroups EachGpu(const Topology& topology);
NodeGroups EachHost(const Topology& topology);
// For each bandwidth but the least, the fastest 32 first: the components that links of at least this
// bandwidth join. Components without a GPU are in no group.
std::vector<NodeGroups> JoinedByFastLinks(const Topology& topology);

// Amounts, in bytes or bytes per second, that leave a group and that enter it.
struct OutAndIn {
  double out = 0, in = 0;
};
// The bandwidth of the links out of and into each group, by its number. Links within a group do not count.
std::vector<OutAndIn> BandwidthAround(const Topology& topology, const NodeGroups& group_of);

// The bandwidth that passes from group to group share: of all links out of groups, or of all into them,
// whichever is less. 0 if a node in no group can copy or sum, so that passes cannot be counted.
double PassBandwidth(const Topology& topology, const NodeGroups& group_of);

// The most seconds that a group's bytes take over the bandwidth around it.
double SecondsAround(const std::vector<OutAndIn>& bytes, const std::vector<OutAndIn>& bandwidth);

// Lists of keys of all nodes for sweeps, which cut between nodes with different keys. The keys of the first
// list are in document order. In each other list a key says how much nearer the node is to one landmark than
// to another, which slices a grid along its dimensions.
std::vector<std::vector<int32_t>> SweepKeys(const Topology& topology);

// The cuts between nodes of different keys. Places number the keys: the nodes at places 0..i are on the low
// side of cut i. Cost: linear in the links and in what is added.
class NodeSweep {
 public:
  NodeSweep(const Topology& topology, const std::vector<int32_t>& key);
  int32_t PlaceOf(int32_t node) const { return place_[static_cast<size_t>(node)]; }
  // So many bytes must cross every cut between the places `from` and `to`.
  void Add(int32_t from, int32_t to, double bytes) { Between(from, to, &Change::bytes, bytes); }
  // The most seconds that the bytes take to cross a cut.
  double Seconds() const;

 private:
  struct Change {
    double bytes = 0, bandwidth = 0;
  };
  void Between(int32_t from, int32_t to, double Change::*what, double amount);

  std::vector<int32_t> place_;     // by node
  std::vector<Change> up_, down_;  // by place: how the amounts across change from the cut before it
};

}  // namespace xccl
