// Grows one cheap broadcast tree at given prices of links. In: a machine, the ranks that the tree must reach,
// and a price for each link; links of infinite price are left out. Out: arcs, each a path between two GPUs
// through no other GPU.
//
// The tree grows as in Prim's algorithm, over whole paths: the cheapest path from any GPU of the tree to a
// rank outside it comes next, among equal ones that of least latency. The tree is the cheapest where both
// directions of each cable cost the same, and near it elsewhere. Arcs also start at switches of the tree that
// branch, so that the path to the switch is paid once. Cost of a tree: links × log.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

// One arc of a tree, from a GPU that has the data to one that does not.
struct PackedArc {
  Rank from, to;
  int32_t first_link = 0, num_links = 0;  // in the list of links that Grow appends to
  int32_t depth = 0;                      // transfers from the root to `to`, at least 1
  // The earlier arc from whose path this arc branches off at a switch, where its links start. A trunk has no
  // trunk itself. -1: none, and the links start at `from`.
  int32_t trunk = -1;
};

struct GrownTree {
  double cost = 0;
  std::vector<PackedArc> arcs;  // parents first
  int64_t latency_ps = 0;       // to its farthest rank
};

// The switches at which trees branch.
enum class Branching : uint8_t {
  kNone,
  kMulticast,
  kReduce,  // switches that reduce, on the reversed machine
};

class TreeGrower {
 public:
  TreeGrower(const Topology& topology, std::span<const Rank> members, Branching branching);

  // Grows a tree and appends the links of its arcs to `links`. cost: by link. s_per_ps: the cost of a
  // picosecond of distance from the root. The tree has fewer arcs if members cannot be reached.
  GrownTree Grow(Rank root, std::span<const double> cost, double s_per_ps, std::vector<LinkId>& links);

  // Starts a tree that Attach extends: the root alone, at these prices.
  void Start(Rank root, std::span<const double> cost, double s_per_ps);
  // Is the node in the tree, so that paths may start there?
  bool Has(NodeId node) const { return place_[node.index()].in; }
  // Adds a path, given with its last link first, that starts at a node of the tree: one arc to each GPU on
  // it. Requires: no other node of the path is in the tree.
  void Attach(std::span<const LinkId> path, GrownTree& tree, std::vector<LinkId>& links);

 private:
  // The cheapest path to a node from the tree: key = cost of its links + s_per_ps × latency.
  struct Label {
    double key = std::numeric_limits<double>::infinity();
    int64_t latency_ps = 0;  // from the root
    LinkId via;
  };
  struct Place {
    bool in = false;
    int32_t depth = 0;  // depth of the GPU; at a switch, of the GPU that sends to it
    int64_t latency_ps = 0;
    Rank from = {};      // at a switch: the GPU that sends to it
    int32_t trunk = -1;  // at a switch: the arc that passes it
  };
  struct Entry {
    double key;
    int64_t latency_ps;
    NodeId node;
    auto operator<=>(const Entry&) const = default;
  };

  void Join(NodeId node, const Place& place);
  void Relax(NodeId from, double key_from, int64_t latency_ps);

  const Topology& topology_;
  std::span<const double> cost_;
  double s_per_ps_ = 0;
  std::vector<Label> label_;
  std::vector<Place> place_;
  std::vector<bool> member_, branches_;  // by node
  int32_t num_members_;
  std::vector<Entry> heap_;
  std::vector<LinkId> path_;
};

}  // namespace xccl
