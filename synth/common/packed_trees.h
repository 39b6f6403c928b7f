// Weighted spanning trees, and the schedules that they are: a part is cut into the trees' shares, as long as
// their weights, and every share is copied down its tree; or, turned round, summed up it.
//
// A share is cut into waves, small at both ends, and links serve an earlier wave first: so links that are
// loaded alike finish within a fraction of a wave of each other, and filling takes the time of the smallest.
// Within a step ranks start with different neighbours, so that no port of a switch is everybody's first
// choice.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/symmetry.h"
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
  const SymmetryGroup* symmetry = nullptr;  // there are trees for representatives' parts alone, part i being
                                            // rank i's, and the schedule is compressed
  int32_t waves = 1;    // chunks a tree; a wave's steps come after those of the wave before
  bool turned = false;  // for a reduction: finer steps
};

// Relative sizes of waves: each half as large again as the one before, up to 16 times the first; the last
// ones mirror the first. Requires: waves >= 1.
std::vector<int64_t> WaveWeights(int32_t waves);

struct TreeSchedule {
  Collective collective;  // cut: part by part, tree by tree, wave by wave
  Schedule schedule;      // normalized
};

// allgather(v), broadcast. `whole` has its parts whole; parts without a tree stay so. Cost: a sort of arcs ×
// waves.
TreeSchedule CopyDown(const PackedTrees& trees, const Collective& whole, const TreeSteps& steps);

// reduce_scatter(v), reduce. Requires: the trees' paths lie on ReverseTopology(topology).
TreeSchedule SumUp(const PackedTrees& trees, const Topology& topology, const Collective& whole,
                   const TreeSteps& steps);

// allreduce: what `up` sums at a root (as in SumUp), `down` copies from there. Both have part i for member i,
// with weights that add up to the same for every part of one of them; a member's share of the whole is as
// large as any other's. steps.order is for the copies. Chunks are what an up-tree and a down-tree of a member
// have in common.
TreeSchedule SumUpCopyDown(const PackedTrees& up, const PackedTrees& down, const Topology& topology,
                           const Collective& whole, const TreeSteps& steps);

}  // namespace xccl
