// Weighted spanning trees, and the schedules made from them. A part is cut into the shares of its trees, in
// proportion to their weights. Each share is copied down its tree or, on the reversed machine, summed up it.
//
// A share is cut into waves, the first and the last of which are small, and links serve earlier waves first.
// Links with equal loads then finish within a fraction of a wave of each other, and the pipeline fills in the
// time of the smallest wave. At each link data with the longest path ahead goes first. Within a step ranks
// start with different neighbours, so that not all ranks choose one port of a switch first.
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
  // Set: only the parts of representatives have trees, part i is rank i's, and the schedule is compressed.
  const SymmetryGroup* symmetry = nullptr;
  int32_t waves = 1;  // chunks a tree; the steps of a wave come after the steps of the wave before
};

// The relative sizes of waves. Each is 1.5 times the one before, up to 16 times the first; the second half
// mirrors the first half. Requires: waves >= 1.
std::vector<int64_t> WaveWeights(int32_t waves);

// allgather(v), broadcast. Cuts each part of `whole` that has trees tree by tree, wave by wave; the other
// parts stay whole. Cost: a sort of arcs × waves.
ChunkedSchedule CopyDown(const PackedTrees& trees, const Collective& whole, const TreeSteps& steps);

// reduce_scatter(v), reduce. Requires: the trees' paths lie on ReverseTopology(topology).
ChunkedSchedule SumUp(const PackedTrees& trees, const Topology& topology, const Collective& whole,
                      const TreeSteps& steps);

// allreduce: `up` sums each member's share at the member (as in SumUp), and `down` copies it from there. Both
// have part i for member i, and equal sums of weights for every part, so members' shares are equal. A chunk
// is the intersection of an up-tree's and a down-tree's share.
ChunkedSchedule SumUpCopyDown(const PackedTrees& up, const PackedTrees& down, const Topology& topology,
                              const Collective& whole, const TreeSteps& steps);

}  // namespace xccl
