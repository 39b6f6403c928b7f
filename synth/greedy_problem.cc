#include "synth/greedy_problem.h"

#include <algorithm>

#include "base/units.h"
#include "ir/sizes.h"

namespace xccl::greedy {

std::vector<LinkCost> LinkCosts(const Topology& topology, TimeModel model) {
  std::vector<LinkCost> costs;
  costs.reserve(static_cast<size_t>(topology.num_links()));
  for (const Link& link : topology.spec().links) {
    const bool blocking = model == TimeModel::kBlocking;
    costs.push_back({.fixed_ps = link.overhead_ps + (blocking ? link.latency_ps : 0),
                     .delay_ps = blocking ? 0 : link.latency_ps,
                     .bytes_per_s = link.bandwidth_bytes_per_s});
  }
  return costs;
}

CopyProblem MakeCopyProblem(const Topology& topology, const Collective& collective, int64_t size_bytes,
                            TimeModel model) {
  CopyProblem problem;
  problem.topology = &topology;
  problem.model = model;
  problem.chunks = collective.num_chunks();
  const CollectiveSizes sizes(collective, size_bytes);
  problem.bytes.resize(static_cast<size_t>(problem.chunks));
  problem.holders.resize(static_cast<size_t>(problem.chunks));
  problem.needers.resize(static_cast<size_t>(problem.chunks));
  std::vector<Holding> before, after;
  for (int32_t c = 0; c < problem.chunks; ++c) {
    problem.bytes[c] = sizes.ChunkBytes(ChunkId(c));
    if (collective.AlwaysEmpty(ChunkId(c))) continue;
    collective.Before(ChunkId(c), before);
    collective.After(ChunkId(c), after);
    // A reduction runs backwards: who ends with the sum spreads it to those that contribute.
    if (collective.Reduces()) before.swap(after);
    for (const Holding& holding : before) problem.holders[c].push_back(holding.rank.value);
    std::sort(problem.holders[c].begin(), problem.holders[c].end());
    for (const Holding& holding : after)
      if (!std::binary_search(problem.holders[c].begin(), problem.holders[c].end(), holding.rank.value))
        problem.needers[c].push_back(holding.rank.value);
    std::sort(problem.needers[c].begin(), problem.needers[c].end());
  }
  return problem;
}

}  // namespace xccl::greedy
