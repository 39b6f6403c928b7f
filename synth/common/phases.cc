#include "synth/common/phases.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "ir/sizes.h"
#include "ir/time_model.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

// Center examines all members or at least this many, evenly spaced, but fewer than twice this many. Each
// member costs two searches.
constexpr int32_t kCenterCandidates = 32;

// Returns the examined member with the least latency to its farthest member and back.
int32_t Center(const Topology& topology, const Collective& collective) {
  const std::span<const Rank> ranks = collective.ranks();
  const size_t step = std::max<size_t>(1, ranks.size() / kCenterCandidates);
  int32_t best = ranks[0].value;
  int64_t best_ps = INT64_MAX;
  for (size_t i = 0; i < ranks.size(); i += step) {
    const auto from = LeastLatencyFrom(topology, {topology.NodeOf(ranks[i])});
    const auto to = LeastLatencyTo(topology, topology.NodeOf(ranks[i]));
    int64_t farthest = 0;
    for (Rank r : ranks) {
      const size_t node = topology.NodeOf(r).index();
      farthest = std::max(farthest, from[node].value_or(INT64_MAX / 4) + to[node].value_or(INT64_MAX / 4));
    }
    if (farthest < best_ps) best_ps = farthest, best = ranks[i].value;
  }
  return best;
}

Status NotServed(const Collective& collective, ChunkId chunk, std::string_view why) {
  return InvalidInput(
      fmt::format("greedy: {}: part {}: {}", collective.name(), collective.PartOf(chunk).value, why));
}

// Checks that all ranks need the same contributions and that no rank holds another one. If they need several,
// checks that one rank holds each contribution, alone.
Status CheckForm(const Collective& collective, ChunkId chunk, const std::vector<Holding>& before,
                 const std::vector<Holding>& after) {
  const std::span<const Rank> sum = after.front().contributions;
  for (const Holding& need : after)
    if (!std::equal(sum.begin(), sum.end(), need.contributions.begin(), need.contributions.end()))
      return NotServed(collective, chunk, "ranks need different contributions; expected the same everywhere");
  if (sum.size() == 1) {
    for (const Holding& have : before)
      if (have.contributions.size() != 1 || have.contributions[0] != sum[0])
        return NotServed(
            collective, chunk,
            fmt::format("rank {} holds other data than the part's; expected only contribution {}",
                        have.rank.value, sum[0].value));
    return OkStatus();
  }
  size_t found = 0;
  for (const Holding& have : before) {
    if (have.contributions.size() != 1)
      return NotServed(collective, chunk,
                       fmt::format("rank {} holds a partial sum before; expected one contribution a rank",
                                   have.rank.value));
    if (!std::binary_search(sum.begin(), sum.end(), have.contributions[0]))
      return NotServed(collective, chunk,
                       fmt::format("contribution {} of rank {} is in no sum", have.contributions[0].value,
                                   have.rank.value));
    ++found;
  }
  if (found != sum.size())
    return NotServed(
        collective, chunk,
        fmt::format("{} ranks hold the {} contributions of the sum; expected each once", found, sum.size()));
  return OkStatus();
}

void Prepare(const Topology& topology, const CollectiveSizes& sizes, TimeModel model, int32_t chunks,
             CopyProblem& problem) {
  problem.topology = &topology;
  problem.model = model;
  problem.chunks = chunks;
  for (int32_t c = 0; c < chunks; ++c) problem.bytes.push_back(sizes.ChunkBytes(ChunkId(c)));
  problem.holders.resize(static_cast<size_t>(chunks));
  problem.needers.resize(static_cast<size_t>(chunks));
}

}  // namespace

StatusOr<Phases> MakePhases(const Topology& topology, const Topology& reversed, const Collective& collective,
                            int64_t size_bytes, TimeModel model, SumAt sum_at) {
  Phases phases;
  const CollectiveSizes sizes(collective, size_bytes);
  const int32_t chunks = collective.num_chunks();
  Prepare(reversed, sizes, model, chunks, phases.gather);
  Prepare(topology, sizes, model, chunks, phases.spread);
  phases.gather.contributing_holders.resize(static_cast<size_t>(chunks));
  std::optional<int32_t> center;
  std::vector<Holding> before, after;
  for (int32_t c = 0; c < chunks; ++c) {
    collective.Before(ChunkId(c), before);
    collective.After(ChunkId(c), after);
    if (after.empty()) continue;
    XCCL_RETURN_IF_ERROR(CheckForm(collective, ChunkId(c), before, after));
    const bool sums = after.front().contributions.size() > 1;
    std::vector<int32_t> holders;
    for (const Holding& have : before) holders.push_back(have.rank.value);
    std::sort(holders.begin(), holders.end());
    if (sums) {
      int32_t maker = after[static_cast<size_t>(c) % after.size()].rank.value;
      if (sum_at == SumAt::kCenter && after.size() > 1) {
        if (!center) center = Center(topology, collective);
        maker = *center;
      }
      phases.gather.holders[c] = {maker};
      for (int32_t r : holders)
        (r != maker ? phases.gather.needers[c] : phases.gather.contributing_holders[c]).push_back(r);
      holders = {maker};
    }
    phases.spread.holders[c] = holders;
    for (const Holding& need : after)
      if (!std::binary_search(holders.begin(), holders.end(), need.rank.value))
        phases.spread.needers[c].push_back(need.rank.value);
    std::sort(phases.spread.needers[c].begin(), phases.spread.needers[c].end());
    phases.has_gather |= !phases.gather.needers[c].empty();
    phases.has_spread |= !phases.spread.needers[c].empty();
  }
  return phases;
}

}  // namespace xccl
