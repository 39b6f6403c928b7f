// An allreduce over weighted trees: each tree carries its share of the buffer up to its root, which sums, and
// down again. In: trees of ranks; the trees up and down are given apart, since they may differ. Out: chunks,
// and the schedule. Linear in the transfers.
//
// All ranks end with copies of one root's sum, so they have the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/symmetry.h"

namespace xccl {

struct ChunkedSchedule {
  Collective collective;  // cut into the chunks that the schedule moves
  Schedule schedule;      // normalized
};

struct TreeEdge {
  Rank parent, child;
  // In AllreduceTrees::paths. It leads from child to parent where data goes up, else from parent to child.
  // Children of one parent may share one path, which a switch joins or branches.
  PathId path;
  bool shared = false;  // another of these edges stands for their transfer: the one whose child comes first
                        // in the path
};

struct AllreduceTree {
  int64_t weight = 0;  // the chunk's; > 0
  Rank root;
  std::vector<TreeEdge> up, down;  // parents first: a parent is the root or an earlier child
};

struct AllreduceTrees {
  PathTable paths;
  std::vector<AllreduceTree> trees;
};

// The trees are used in as many rounds as there are weights in `rounds`: once a round on average, a tree of
// more weight more often, so that chunks are of about one size, and each tree at even distances. In one round
// each is used once, and so in every round of a compressed schedule. A link serves lower steps first. In one
// round it would pass all sums before the first result, and links that only carry results would wait. A
// chunk's steps are therefore one later than those of the chunk before. Within a chunk they count back from
// the end: data with the longest path ahead goes first. Requires: every tree spans the members of
// `collective`, which has one part.
//
// With symmetry the roots represent their orbits, all trees are translated by the whole group, and the
// schedule is compressed. Every member then has the chunks that its representative's trees make.
ChunkedSchedule MakeAllreduceSchedule(const AllreduceTrees& trees, std::span<const int64_t> rounds,
                                      const Collective& collective, const SymmetryGroup* symmetry = nullptr);

}  // namespace xccl
