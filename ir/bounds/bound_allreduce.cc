// Bounds for allreduce. Whatever a plan does with one byte, it obeys two facts.
//
// Cuts: a set that holds some members but not all must send out the sum of its contributions and receive
// the result. So the bytes leave it once and enter it once.
//
// Partitions: let disjoint blocks of nodes hold all members, let k blocks have members, and let nothing
// outside the blocks store, copy or sum. Then the byte passes from block to block at least 2(k-1) times.
// Proof: treat a block as one node that knows all that its nodes know. Let x be the first block that knows
// all contributions. By then each other block with members has sent at least once: k-1 messages, or k if x
// has no members. At that time only x knows all, so each other block with members must still receive: k-1
// more messages. So T >= 2(k-1) × bytes ÷ (bandwidth out of the blocks), and the same holds for the bandwidth
// into them. This is true of trees, rings, recursive doubling and any other plan.
//
// Where GPUs are joined directly, all are members, and both directions of each cable have equal bandwidth,
// the bound of the worst partition is attained: by the theorem of Nash-Williams and Tutte, spanning trees
// pack at exactly that rate, and each serves once as in-tree and once as out-tree.
#include <algorithm>
#include <optional>
#include <set>

#include "base/units.h"
#include "ir/bounds/bound_bandwidth.h"
#include "ir/bounds/bound_cut.h"
#include "ir/bounds/node_cuts.h"
#include "ir/bounds/partitions.h"

namespace xccl {
namespace {

// Seconds per byte, given blocks, which hold all GPUs; 0 if the proof does not apply.
double PartitionSeconds(const Topology& topology, const Collective& collective, const NodeGroups& block_of) {
  std::set<int32_t> with_members;
  for (Rank r : collective.ranks()) with_members.insert(block_of[topology.NodeOf(r).index()]);
  const double k = static_cast<double>(with_members.size());
  const double bandwidth = PassBandwidth(topology, block_of);
  return k < 2 || bandwidth == 0 ? 0 : 2 * (k - 1) / bandwidth;
}

}  // namespace

BandwidthBound AllreduceBound(const Topology& topology, const Collective& collective, int64_t bytes,
                              BoundEffort effort) {
  if (collective.num_members() < 2 || bytes == 0) return {0, BoundKind::kCut};
  BandwidthBound bound;
  const double scale = static_cast<double>(bytes) * static_cast<double>(kPsPerSecond);
  for (bool reversed : {false, true}) {
    RatioCutProblem problem = CutsOf(topology, reversed);
    for (Rank r : collective.ranks()) problem.sinks.push_back(topology.NodeOf(r).value);
    problem.supply[problem.sinks[0]] = 1;
    if (const std::optional<RatioCut> cut = FindRatioCut(std::move(problem))) {
      const double ps = scale * static_cast<double>(cut->supply) / static_cast<double>(cut->capacity);
      if (ps > bound.ps) bound = {ps, BoundKind::kCut, {}};
    }
  }
  bound.partitions = Partitions(topology, collective, effort);
  for (const NodeGroups& block_of : bound.partitions) {
    const double ps = PartitionSeconds(topology, collective, block_of) * scale;
    if (ps > bound.ps * (1 + 1e-12)) {
      bound.ps = ps;
      bound.kind = BoundKind::kCounting;
    }
  }
  return bound;
}

}  // namespace xccl
