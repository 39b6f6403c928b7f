// Makes an allreduce schedule from weighted trees. A tree consists of an up-tree and a down-tree with one
// root; the two may differ. The tree's share of the buffer is summed up to the root and copied down again.
// Output: the chunks and the schedule. All ranks end with copies of the root's sum, so all ranks have the
// same bits. Linear in the transfers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/symmetry.h"

namespace xccl {

// The denominator of weights that are not simple fractions. Weights are then exact to a millionth, and sums
// of many weights fit 64 bits.
inline constexpr int64_t kWeightUnits = 1 << 20;

struct ChunkedSchedule {
  Collective collective;  // cut into the chunks that the schedule moves
  Schedule schedule;      // normalized
};

struct TreeEdge {
  Rank parent, child;
  // The path in AllreduceTrees::paths, from child to parent in an up-tree and from parent to child in a
  // down-tree. Edges of one parent share a path if a switch reduces or multicasts their data.
  PathId path;
  bool shared = false;  // another edge adds the path's transfer: the edge whose child comes first in the path
};

struct AllreduceTree {
  int64_t weight = 0;  // the tree's share, relative to the other trees; > 0
  Rank root;
  std::vector<TreeEdge> up, down;  // parents first: a parent is the root or the child of an earlier edge
};

struct AllreduceTrees {
  PathTable paths;
  std::vector<AllreduceTree> trees;
};

// Makes the schedule. A tree's share is cut into chunks, which the tree carries in rounds. `rounds` has one
// entry per round: the relative size of the round. On average a tree carries one chunk per round. A heavier
// tree carries more chunks, evenly spaced, so that the chunks of a round have about the same size. With one
// round, or with symmetry, every tree carries exactly one chunk per round.
//
// Links serve lower steps first. The steps of each chunk come one later than the steps of the chunk before,
// so that early chunks need not wait for the sums of all chunks. Within a chunk, steps count back from the
// end, so that data with the longest path ahead goes first. Requires that every tree spans the members of
// `collective`, and that `collective` has one part.
//
// With symmetry, the schedule is compressed and the group translates all trees. Every root must then be the
// representative of its orbit. Every member has the same chunks as the representative of its orbit.
ChunkedSchedule MakeAllreduceSchedule(const AllreduceTrees& trees, std::span<const int64_t> rounds,
                                      const Collective& collective, const SymmetryGroup* symmetry = nullptr);

}  // namespace xccl
