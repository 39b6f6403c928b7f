// Reductions from gathers: a reduce_scatter is an allgather on the machine with every link reversed, played
// backwards. KeepTrees establishes the form that Reverse requires.
#pragma once

#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// The machine with every link reversed; ids of nodes and links stay.
Topology ReverseTopology(const Topology& topology);

// The paths with their links in the opposite order; ids stay.
PathTable Backwards(const PathTable& paths);

// The start and end of copies: chunk c starts at owner[c] and goes to every member, or to target[c] if
// targets are given.
struct CopyGoal {
  std::vector<Rank> members;
  std::vector<Rank> owner;   // by chunk
  std::vector<Rank> target;  // by chunk; empty: all members
};

// Reduces a schedule of copies to trees: keeps the earliest arrival of each (rank, chunk), and leaves out
// transfers that no rank needs. `ranks`: the machine's number of ranks. Requires: a normalized schedule of
// copies that verifies, except that chunks may arrive twice in one step. Linear in single-chunk transfers;
// memory: ranks × chunks bits.
Schedule KeepTrees(const Schedule& schedule, const CopyGoal& goal, int32_t ranks);

// Plays `gather`, copies on ReverseTopology(topology), backwards on `topology`: a copy from a to b becomes a
// transfer from b to a over the reversed path. With kReduce, allgather(v) becomes reduce_scatter(v) and
// broadcast becomes reduce: the transfer is added to a's value. A rank that contributes nothing to a chunk
// holds nothing, so the first value is copied to it, in an earlier step than the rest. With kCopy, gather
// becomes scatter. Chunk ids stay; the result is normalized. Requires: `gather` writes each (rank, chunk) at
// most once, and its steps are in order.
Schedule Reverse(const Schedule& gather, const Topology& topology, const Collective& collective,
                 TransferOp op);

}  // namespace xccl
