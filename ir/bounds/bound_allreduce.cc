// Bandwidth bounds of an allreduce. Every plan obeys two facts about each byte.
//
// Cut: let a set of nodes hold some members but not all. The set must send out the sum of its contributions
// and must receive the result. So the byte leaves the set at least once and enters it at least once.
//
// Partition: let disjoint blocks of nodes hold all GPUs, let k blocks have members, and let no node outside
// the blocks copy or sum. Then the byte passes from block to block at least 2(k-1) times. Proof: treat a
// block as one node that knows everything that its nodes know. Let x be the first block that knows all
// contributions.
// 1. Until that moment each other block with members has sent at least once. This makes k-1 messages, or k
//    messages if x has no members.
// 2. At that moment only x knows all contributions. So each other block with members must still receive: k-1
//    more messages.
// So T >= 2(k-1) × bytes ÷ (bandwidth out of the blocks), and T >= 2(k-1) × bytes ÷ (bandwidth into the
// blocks). The proof holds for trees, rings, recursive doubling and any other plan.
//
// The bound of the worst partition is attained if GPUs are joined directly, all GPUs are members, and both
// directions of each cable have equal bandwidth. Then spanning trees pack at exactly the rate of the bound
// (theorem of Nash-Williams and Tutte). Each tree serves once for the sum and once for the result.
#include <algorithm>
#include <optional>
#include <set>

#include "base/units.h"
#include "ir/bounds/bound_bandwidth.h"
#include "ir/bounds/bound_cut.h"
#include "ir/bounds/node_cuts.h"
#include "ir/bounds/partitions.h"

namespace xccl {
double PartitionSeconds(const Topology& topology, const Collective& collective, const NodeGroups& block_of) {
  std::set<int32_t> with_members;
  for (Rank r : collective.ranks()) with_members.insert(block_of[topology.NodeOf(r).index()]);
  const double k = static_cast<double>(with_members.size());
  const double bandwidth = PassBandwidth(topology, block_of);
  return k < 2 || bandwidth == 0 ? 0 : 2 * (k - 1) / bandwidth;
}

BandwidthBound AllreduceBound(const Topology& topology, const Collective& collective, int64_t bytes,
                              BoundEffort effort) {
  if (collective.num_members() < 2 || bytes == 0) return {0, BoundKind::kCut};
  BandwidthBound bound;
  const double scale = static_cast<double>(bytes) * static_cast<double>(kPsPerSecond);
  const bool large = collective.num_members() > kMostCutRanks;
  if (large) bound.ps = OnePartSeconds(topology, collective, bytes) * static_cast<double>(kPsPerSecond);
  for (bool reversed : {false, true}) {
    if (large) break;
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
