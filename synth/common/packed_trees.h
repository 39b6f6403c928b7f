// Weighted spanning trees, and the schedules made from them. Each tree of a part carries a share of the part
// in proportion to the tree's weight. The share is copied down the tree or, on the reversed machine, summed
// up the tree.
//
// A share is cut into waves, chunks that follow each other through the tree as in a pipeline. The first and
// the last waves are small, so the pipeline fills and drains quickly. Links serve earlier waves first, so
// links with equal loads finish within a fraction of a wave of each other. At each link, data with the
// longest path ahead goes first. Within a step, ranks start with different neighbours, so that not all ranks
// choose the same port of a switch first.
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

// Invariant: every arc starts at the root or at the head of an earlier arc, and no rank is entered twice.
struct PackedTree {
  PartId part;         // the part whose data it carries
  Rank root;           // where the part starts, or where it is summed
  int64_t weight = 1;  // > 0: the share of the part, relative to the part's other trees
  std::vector<TreeArc> arcs;
  bool operator==(const PackedTree&) const = default;
};

struct PackedTrees {
  PathTable paths;
  std::vector<PackedTree> trees;
  int32_t Depth() const;  // the depth of the deepest arc; 0 without arcs
  int64_t NumArcs() const;
  bool operator==(const PackedTrees&) const = default;
};

struct TreeSteps {
  // If set, the schedule is compressed: only the parts of representatives have trees, and part i belongs to
  // rank i.
  const SymmetryGroup* symmetry = nullptr;
  int32_t waves = 1;  // chunks per tree; all steps of a wave come after the steps of the wave before
};

// Returns the relative sizes of the waves. Each wave is about 1.5 times the wave before, up to 16 times the
// first. The second half mirrors the first half. Requires: waves >= 1.
std::vector<int64_t> WaveWeights(int32_t waves);

// Makes the schedule of an allgather(v) or broadcast. Cuts each part of `whole` that has trees into chunks:
// tree by tree, and each tree's share wave by wave. With symmetry, all parts of an orbit are cut as the
// representative's part. Other parts without trees stay whole. Cost: a sort of arcs × waves.
ChunkedSchedule CopyDown(const PackedTrees& trees, const Collective& whole, const TreeSteps& steps);

// Makes the schedule of a reduce_scatter(v) or reduce. Requires that the trees' paths lie on
// ReverseTopology(topology).
ChunkedSchedule SumUp(const PackedTrees& trees, const Topology& topology, const Collective& whole,
                      const TreeSteps& steps);

// Makes the schedule of an allreduce. The trees `up` sum each member's share at the member, as in SumUp. The
// trees `down` copy the sum from the member. A chunk is one wave of the intersection of an up-tree's share
// and a down-tree's share. Requires that part i of `up` and of `down` belongs to member i, and that the
// weights of every part have the same sum. All members' shares of the buffer are equal.
ChunkedSchedule SumUpCopyDown(const PackedTrees& up, const PackedTrees& down, const Topology& topology,
                              const Collective& whole, const TreeSteps& steps);

}  // namespace xccl
