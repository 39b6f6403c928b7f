// An allreduce over weighted trees: each tree sums its share of the buffer up to its root and copies the sum
// down again. In: for each root a tree up and a tree down, which may differ. Out: chunks, and the schedule.
// All ranks end with copies of the root's sum, so they have the same bits. Linear in the transfers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/symmetry.h"

namespace xccl {

// Parts of a weight that is no simple fraction: weights are exact to a millionth, and sums of many fit 64
// bits.
inline constexpr int64_t kWeightUnits = 1 << 20;

struct ChunkedSchedule {
  Collective collective;  // cut into the chunks that the schedule moves
  Schedule schedule;      // normalized
};

struct TreeEdge {
  Rank parent, child;
  // In AllreduceTrees::paths: from child to parent in a tree up, from parent to child in a tree down. Edges
  // of one parent share a path where a switch adds up or copies their data.
  PathId path;
  bool shared = false;  // the transfer belongs to another edge: the one whose child comes first in the path
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

// Cuts each tree's share into chunks, in as many rounds as `rounds` has weights. On average a tree carries
// one chunk a round; heavier trees carry more chunks, at even distances, so that all chunks are of about one
// size. With one round, or with symmetry, every tree carries exactly one chunk a round.
//
// Links serve lower steps first. Each chunk's steps are one later than the chunk's before, so that results of
// early chunks need not wait for the sums of all chunks. Within a chunk steps count back from the end: data
// with the longest path ahead goes first. Requires: every tree spans the members of `collective`, which has
// one part.
//
// With symmetry the roots represent their orbits, the whole group translates all trees, and the schedule is
// compressed. Every member then has the chunks that its representative's trees make.
ChunkedSchedule MakeAllreduceSchedule(const AllreduceTrees& trees, std::span<const int64_t> rounds,
                                      const Collective& collective, const SymmetryGroup* symmetry = nullptr);

}  // namespace xccl
