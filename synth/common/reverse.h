// Makes reductions from gathers. A reduce_scatter is an allgather on the machine with every link reversed,
// played backwards. KeepTrees reduces a schedule of copies to the form that Reverse requires.
#pragma once

#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// Returns the machine with every link reversed. Ids of nodes and links stay the same.
Topology ReverseTopology(const Topology& topology);

// Returns the paths with their links in the opposite order. Path ids stay the same.
PathTable Backwards(const PathTable& paths);

// The start and the end of copies: chunk c starts at owner[c] and goes to target[c], or to every member if
// `target` is empty.
struct CopyGoal {
  std::vector<Rank> members;
  std::vector<Rank> owner;   // by chunk
  std::vector<Rank> target;  // by chunk; empty: all members
};

// Reduces a schedule of copies to trees. Keeps the first arrival of each chunk at each rank, and leaves out
// transfers of data that no rank needs. `ranks` is the number of ranks of the machine. Requires a normalized
// schedule of copies that verifies, except that a chunk may arrive twice at a rank in one step. Linear in the
// chunks of all transfers. Memory: ranks × chunks bits.
Schedule KeepTrees(const Schedule& schedule, const CopyGoal& goal, int32_t ranks);

// Plays `gather`, a schedule of copies on ReverseTopology(topology), backwards on `topology`. A copy from a
// to b becomes a transfer from b to a over the reversed path. With kCopy, a gather becomes a scatter.
//
// With kReduce, the transfer is added to the value at a: allgather(v) becomes reduce_scatter(v), and
// broadcast becomes reduce. A rank that contributes nothing to a chunk has no value to add to. The first
// transfer to the rank is then a copy, in an earlier step than the transfers that are added.
//
// Chunk ids stay the same, and the result is normalized. Requires that `gather` writes each chunk at each
// rank at most once, and that its steps are in order.
Schedule Reverse(const Schedule& gather, const Topology& topology, const Collective& collective,
                 TransferOp op);

}  // namespace xccl
