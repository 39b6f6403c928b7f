// Grows one cheap broadcast tree at given prices of links. In: a machine, the ranks that the tree must reach,
// a price for each link. Out: arcs, each a path between two GPUs through no other GPU.
//
// The tree grows as Prim's does, over whole paths: from every GPU that has the data at once, cheapest first,
// then soonest. That is the cheapest tree where both directions of cables cost the same, and near it
// elsewhere. Where switches branch, they have the data once it has passed them, and arcs start there as well:
// the path to the switch is paid once. Cost of a tree: links × log.
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
  int32_t depth = 0;                      // transfers from the root, from 1
  // The earlier arc from whose path this one branches off at a switch: its links start there. That arc
  // branches off no other. -1: none, its links start at `from`.
  int32_t trunk = -1;
};

struct GrownTree {
  double cost = 0;
  std::vector<PackedArc> arcs;  // parents first
  int64_t latency_ps = 0;       // to its farthest rank
};

// The switches that pass the data on to several.
enum class Branching : uint8_t {
  kNone,
  kMulticast,
  kReduce,  // those that reduce: the machine is reversed
};

class TreeGrower {
 public:
  TreeGrower(const Topology& topology, std::span<const Rank> members, Branching branching);

  // Links of the arcs are appended to `links`. cost: by link; s_per_ps: cost of a picosecond from the root.
  GrownTree Grow(Rank root, std::span<const double> cost, double s_per_ps, std::vector<LinkId>& links);

  // A tree by hand: of the root alone, at these prices.
  void Start(Rank root, std::span<const double> cost, double s_per_ps);
  // Does data start from this node of the tree?
  bool Has(NodeId node) const { return place_[node.index()].in; }
  // Adds a path out of a node that the tree has, its last link first: one arc, or one to each GPU on the
  // path, which joins as well. Requires: the tree has none of the other nodes.
  void Attach(std::span<const LinkId> path, GrownTree& tree, std::vector<LinkId>& links);

 private:
  // The cheapest path to a node from any place of the tree: key = cost of the links + s_per_ps × latency.
  struct Label {
    double key = std::numeric_limits<double>::infinity();
    int64_t latency_ps = 0;  // from the root
    LinkId via;
  };
  struct Place {
    bool in = false;
    int32_t depth = 0;  // depth of the GPU, or of the one from which the data comes to the switch
    int64_t latency_ps = 0;
    Rank from = {};      // a switch: that GPU
    int32_t trunk = -1;  // a switch: the arc that passes it
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
