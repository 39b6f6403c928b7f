// Reductions from gathers: a reduce_scatter is an allgather on the machine with every link reversed, played
// backwards. These functions check and establish what that requires.
#pragma once

#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// The same nodes and link ids, with every link reversed.
Topology ReverseTopology(const Topology& topology);

// The same paths with their links in the opposite order, id for id.
PathTable Backwards(const PathTable& paths);

// Where copies start and end: chunk c starts at owner[c] and goes to every member, or to target[c] where
// targets are given.
struct CopyGoal {
  std::vector<Rank> members;
  std::vector<Rank> owner;   // by chunk
  std::vector<Rank> target;  // by chunk; empty: all members
};

// The same outcome with every (rank, chunk) written at most once, from its earliest arrival, and without
// transfers that no rank needs: every chunk's transfers form a tree. It is for copies only (allgather,
// broadcast, gather, scatter, alltoall and the like). `ranks`: of the machine. Requires: a normalized
// schedule that verifies, apart from chunks that arrive twice in one step. Linear in transfers × chunks each
// moves; memory: ranks × chunks bits.
Schedule KeepTrees(const Schedule& schedule, const CopyGoal& goal, int32_t ranks);

// `gather` moves copies on ReverseTopology(topology), or on paths of it, and writes each (rank, chunk) at
// most once. The result is its reverse on `topology`: what was copied from a to b is sent from b to a, over
// the same links in the opposite order. For kReduce it is added to what a holds. Ranks that contribute
// nothing to a chunk of `collective` hold nothing, so the first value is copied to them, in a step before the
// others. For kCopy (gather to scatter) it is copied. allgather(v) -> reduce_scatter(v), broadcast -> reduce,
// gather -> scatter, with chunk ids unchanged. Requires: steps in order. The result is normalized.
Schedule Reverse(const Schedule& gather, const Topology& topology, const Collective& collective,
                 TransferOp op);

}  // namespace xccl
