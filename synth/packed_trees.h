// Weighted spanning trees, and the schedules that they are: a part is cut into one chunk a tree, as long as
// the tree's weight, and every chunk is copied down its tree; or, turned round, summed up it.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

struct TreeArc {
  Rank from;
  Rank to;
  PathId path;        // in PackedTrees::paths: links from `from` to `to`, through no other GPU
  int32_t depth = 1;  // arcs from the root to `to`
  bool operator==(const TreeArc&) const = default;
};

// Invariant: an arc's tail is the root or the head of an earlier arc, and no rank is entered twice.
struct PackedTree {
  PartId part;         // whose data it carries
  Rank root;           // where the part starts (is summed)
  int64_t weight = 1;  // > 0: share of the part
  std::vector<TreeArc> arcs;
  bool operator==(const PackedTree&) const = default;
};

struct PackedTrees {
  PathTable paths;
  std::vector<PackedTree> trees;
  int32_t Depth() const;  // of the deepest arc; 0 without arcs
  int64_t NumArcs() const;
};

// The order of what is ready at one link.
enum class TreeOrder : uint8_t {
  kShallowFirst,  // an arc's step is its depth: what is near the root goes first
  kTallFirst,     // arcs with the longest way below them go first
};

struct TreeSteps {
  TreeOrder order = TreeOrder::kShallowFirst;
  int32_t slices = 1;  // chunks a tree; slice i runs i steps behind the first
};

struct TreeSchedule {
  Collective collective;  // cut: part by part, tree by tree, slice by slice
  Schedule schedule;      // normalized
};

// allgather(v), broadcast. `whole` has its parts whole; parts without a tree stay so. Linear in arcs ×
// slices.
TreeSchedule CopyDown(const PackedTrees& trees, const Collective& whole, const TreeSteps& steps);

// reduce_scatter(v), reduce. Requires: the trees' paths lie on ReverseTopology(topology).
TreeSchedule SumUp(const PackedTrees& trees, const Topology& topology, const Collective& whole,
                   const TreeSteps& steps);

}  // namespace xccl
