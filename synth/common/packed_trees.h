// Weighted spanning trees, and the schedules made from them. A part is cut into the trees' shares, in
// proportion to their weights. Every share is copied down its tree or, on the reversed machine, summed up it.
//
// A share is cut into waves, small at both ends, and links serve an earlier wave first. Links with equal
// loads thus finish within a fraction of a wave of each other, and filling takes the time of the smallest
// wave. Among data that is ready at one link, that with the longest path ahead goes first. Within a step
// ranks start with different neighbours, so that no port of a switch is the first choice of all ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/common/allreduce_trees.h"
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
  PartId part;         // the part whose data it carries
  Rank root;           // where the part starts (is summed)
  int64_t weight = 1;  // > 0: share of the part
  std::vector<TreeArc> arcs;
  bool operator==(const PackedTree&) const = default;
};

struct PackedTrees {
  PathTable paths;
  std::vector<PackedTree> trees;
  int32_t Depth() const;  // the deepest arc's; 0 without arcs
  int64_t NumArcs() const;
  bool operator==(const PackedTrees&) const = default;
};

struct TreeSteps {
  const SymmetryGroup* symmetry = nullptr;  // there are trees for representatives' parts alone, part i being
                                            // rank i's, and the schedule is compressed
  int32_t waves = 1;  // chunks a tree; a wave's steps come after those of the wave before
};

// Relative sizes of waves: each half as large again as the one before, up to 16 times the first; the last
// ones mirror the first. Requires: waves >= 1.
std::vector<int64_t> WaveWeights(int32_t waves);

// allgather(v), broadcast. `whole` has its parts whole; parts without a tree stay so. The others are cut tree
// by tree, wave by wave. Cost: a sort of arcs × waves.
ChunkedSchedule CopyDown(const PackedTrees& trees, const Collective& whole, const TreeSteps& steps);

// reduce_scatter(v), reduce. Requires: the trees' paths lie on ReverseTopology(topology).
ChunkedSchedule SumUp(const PackedTrees& trees, const Topology& topology, const Collective& whole,
                      const TreeSteps& steps);

// allreduce: `down` copies from a root what `up` sums there (as in SumUp). Both have part i for member i. In
// each of them the weights add up to the same for every part, so members' shares of the whole are equal.
// A chunk is what an up-tree and a down-tree of a member have in common.
ChunkedSchedule SumUpCopyDown(const PackedTrees& up, const PackedTrees& down, const Topology& topology,
                              const Collective& whole, const TreeSteps& steps);

}  // namespace xccl
