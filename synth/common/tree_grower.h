// Grows one cheap broadcast tree at given prices of links. Input: a machine, the ranks that the tree must
// reach, and a price for each link; links with infinite price are not used. Output: arcs, each a path between
// two GPUs that passes no other GPU.
//
// The tree grows as in Prim's algorithm, with whole paths as edges. Each step adds the cheapest path from any
// GPU of the tree to a rank that the tree still misses; of equal paths, the path with the least latency. The
// tree is the cheapest if both directions of each cable have the same price, and if there are no relays, no
// branching switches and no price of latency. An arc may also start at a branching switch of the tree, so
// that the path to the switch is paid once. Cost of a tree: links × log.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

// An arc of a tree, from a GPU that has the data to a GPU that does not.
struct PackedArc {
  Rank from, to;
  int32_t first_link = 0, num_links = 0;  // the arc's range in the list of links that Grow appends to
  int32_t depth = 0;                      // transfers from the root to `to`, at least 1
  // The index of the earlier arc, called the trunk, from whose path this arc branches off. The links of this
  // arc then start at a switch of the trunk or of another branch of it. A trunk has no trunk itself. -1: no
  // trunk, and the links start at `from`.
  int32_t trunk = -1;
};

struct GrownTree {
  double cost = 0;              // sum of the links' prices
  std::vector<PackedArc> arcs;  // parents first
  int64_t latency_ps = 0;       // from the root to its farthest rank
};

// The switches at which trees may branch.
enum class Branching : uint8_t {
  kNone,
  kMulticast,
  kReduce,  // switches that reduce, on the reversed machine
};

class TreeGrower {
 public:
  TreeGrower(const Topology& topology, std::span<const Rank> members, Branching branching);

  // Grows a tree and appends the links of its arcs to `links`. `cost` holds the price of each link; s_per_ps
  // is the price of a picosecond of distance from the root. The tree has fewer arcs if some members cannot be
  // reached.
  GrownTree Grow(Rank root, std::span<const double> cost, double s_per_ps, std::vector<LinkId>& links);

  // Starts a tree that consists of the root alone, at the given prices. Attach extends the tree.
  void Start(Rank root, std::span<const double> cost, double s_per_ps);
  // Returns whether the node is in the tree, so that paths may start at the node.
  bool Has(NodeId node) const { return place_[node.index()].in; }
  // Adds a path that starts at a node of the tree: one arc to each GPU on the path. `path` lists the last
  // link first. Requires that no other node of the path is in the tree.
  void Attach(std::span<const LinkId> path, GrownTree& tree, std::vector<LinkId>& links);

 private:
  // The cheapest known path to a node. key = price of its links + s_per_ps × latency from the root.
  struct Label {
    double key = std::numeric_limits<double>::infinity();
    int64_t latency_ps = 0;  // from the root
    LinkId via;              // the last link of the path
  };
  struct Place {
    bool in = false;
    int32_t depth = 0;  // of the GPU; at a switch, of the GPU that sends to it
    int64_t latency_ps = 0;
    Rank from = {};      // at a switch: the GPU that sends to it
    int32_t trunk = -1;  // at a switch: the trunk of arcs that branch off there
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
