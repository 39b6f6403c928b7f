// Bandwidth bounds for user-defined tables, from the contributions that some rank needs and does not hold.
// The result is the largest of three bounds.
//
// 1. Cuts, for all parts together. A part must leave a set of nodes if some contribution is held only inside
//    the set and needed outside. A part must enter the set if some contribution is held only outside and
//    needed inside. The bytes of all parts share the bandwidth of the cut. All cuts are tried on machines of
//    few nodes; only sweeps (node_cuts.h) are tried on larger machines.
//
// 2. Blocks (each GPU, each host), as for an allreduce (bound_allreduce.cc). Let E be the blocks that hold
//    some contribution alone, and F the blocks that need all contributions of E. Let x be the first block
//    that knows all contributions of E. Each block of E except x has sent at least once by then. Each block
//    of F except x must receive later. So the part passes between blocks at least |E|+|F|-2 times. If E is
//    one block, the part passes at least once for every other block of F. In any case the part passes at
//    least as often as there are blocks that must send it, or blocks that must receive it. If no node outside
//    the blocks copies or sums, the passes of all parts share the bandwidth out of the blocks, and the
//    bandwidth into them.
//
// 3. Destinations, one at a time. A destination must receive all parts that it needs over links that the
//    parts share. A part counts once, because one message may carry the sum of all its contributions. Each
//    part has a source node of its own with wide arcs to all holders of the part. So a cut counts the part
//    only if all holders lie behind the cut. The worst cut of the extended graph is a bound.
//
// Cost: contributions × needers of each part, times the number of sweeps.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/bounds/bound_bandwidth.h"
#include "ir/bounds/bound_cut.h"
#include "ir/bounds/needs.h"
#include "ir/bounds/node_cuts.h"

namespace xccl {
namespace {

// The most nodes of a machine for which all cuts are tried; 10 nodes have about a thousand cuts.
constexpr int32_t kFewNodes = 10;
// The most destinations × (links + table entries) for which bound 3 above is computed.
constexpr int64_t kFlowWork = 20'000'000;

struct PartFacts {
  double bytes = 0;
  std::set<Fact> facts;
};

// Bytes that must cross the borders of blocks. Nodes with block_of[node] < 0 are outside all blocks.
struct Crossing {
  std::vector<OutAndIn> block;  // by block: bytes that must leave and enter
  double passes = 0;            // sum over parts: bytes × passes between blocks
};

Crossing CrossingOf(const Topology& topology, const std::vector<PartFacts>& parts, const NodeGroups& block_of,
                    size_t blocks) {
  Crossing crossing;
  crossing.block.resize(blocks);
  const auto blocks_of = [&](const std::vector<Rank>& ranks) {
    std::vector<int32_t> found;
    for (Rank r : ranks) found.push_back(block_of[topology.NodeOf(r).index()]);
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  };
  for (const PartFacts& part : parts) {
    std::set<int32_t> leaves, enters, alone;
    std::map<int32_t, size_t> needed;  // by block: facts (needs.h) that it needs and one block alone holds
    size_t exclusive = 0;
    for (const Fact& fact : part.facts) {
      const std::vector<int32_t> holders = blocks_of(fact.holders), needers = blocks_of(fact.needers);
      const auto holds = [&](int32_t b) { return std::ranges::binary_search(holders, b); };
      for (int32_t b : needers)
        if (!holds(b)) enters.insert(b);
      if (holders.size() != 1) continue;
      ++exclusive;
      alone.insert(holders[0]);
      for (int32_t b : needers) ++needed[b];
      if (needers.size() > 1 || needers[0] != holders[0]) leaves.insert(holders[0]);
    }
    for (int32_t b : leaves) crossing.block[static_cast<size_t>(b)].out += part.bytes;
    for (int32_t b : enters) crossing.block[static_cast<size_t>(b)].in += part.bytes;
    int64_t all_needed = 0;
    for (const auto& [b, count] : needed)
      all_needed += count == exclusive && (alone.size() > 1 || !alone.contains(b));
    int64_t passes = static_cast<int64_t>(std::max(leaves.size(), enters.size()));
    if (alone.size() == 1) passes = std::max(passes, all_needed);
    if (all_needed > 0) passes = std::max(passes, static_cast<int64_t>(alone.size()) + all_needed - 2);
    crossing.passes += static_cast<double>(passes) * part.bytes;
  }
  return crossing;
}

double BlockSeconds(const Topology& topology, const std::vector<PartFacts>& parts,
                    const NodeGroups& block_of) {
  const std::vector<OutAndIn> bandwidth = BandwidthAround(topology, block_of);
  const Crossing crossing = CrossingOf(topology, parts, block_of, bandwidth.size());
  const double seconds = SecondsAround(crossing.block, bandwidth);
  const double shared = PassBandwidth(topology, block_of);
  return shared > 0 ? std::max(seconds, crossing.passes / shared) : seconds;
}

// Intervals [low, high) of a sweep's cuts that one part must cross.
using Intervals = std::vector<std::pair<int32_t, int32_t>>;

void AddUnion(Intervals& intervals, bool up, double bytes, NodeSweep& sweep) {
  std::ranges::sort(intervals);
  int32_t end = 0;
  for (const auto& [low, high] : intervals) {
    const int32_t begin = std::max(low, end);
    if (begin >= high) continue;
    up ? sweep.Add(begin, high, bytes) : sweep.Add(high, begin, bytes);
    end = high;
  }
}

double SweepSeconds(const Topology& topology, const std::vector<PartFacts>& parts,
                    const std::vector<int32_t>& key) {
  NodeSweep sweep(topology, key);
  const auto place = [&](Rank r) { return sweep.PlaceOf(topology.NodeOf(r).value); };
  const auto ends = [&](const std::vector<Rank>& ranks) {
    const auto [low, high] = std::ranges::minmax_element(ranks, {}, place);
    return std::pair(place(*low), place(*high));
  };
  for (const PartFacts& part : parts) {
    Intervals going_up, going_down;
    for (const Fact& fact : part.facts) {
      const auto [holders_low, holders_high] = ends(fact.holders);
      const auto [needers_low, needers_high] = ends(fact.needers);
      if (holders_high < needers_high) going_up.emplace_back(holders_high, needers_high);
      if (needers_low < holders_low) going_down.emplace_back(needers_low, holders_low);
    }
    AddUnion(going_up, true, part.bytes, sweep);
    AddUnion(going_down, false, part.bytes, sweep);
  }
  return sweep.Seconds();
}

// Returns the most seconds of any cut: the bytes that must leave a set of nodes ÷ the bandwidth of the links
// out of the set. Tries all sets, so the machine must have few nodes.
double EveryCutSeconds(const Topology& topology, const std::vector<PartFacts>& parts) {
  const auto mask_of = [&](const std::vector<Rank>& ranks) {
    uint32_t mask = 0;
    for (Rank r : ranks) mask |= 1u << topology.NodeOf(r).value;
    return mask;
  };
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> facts(parts.size());  // bit sets: holders, needers
  for (size_t p = 0; p < parts.size(); ++p)
    for (const Fact& fact : parts[p].facts)
      facts[p].emplace_back(mask_of(fact.holders), mask_of(fact.needers));
  double seconds = 0;
  for (uint32_t inside = 1; inside + 1 < 1u << topology.num_nodes(); ++inside) {
    double bytes = 0, bandwidth = 0;
    for (size_t p = 0; p < parts.size(); ++p)
      if (std::ranges::any_of(facts[p], [&](const auto& fact) {
            return (fact.first & ~inside) == 0 && (fact.second & ~inside) != 0;
          }))
        bytes += parts[p].bytes;
    if (bytes == 0) continue;
    for (const Link& link : topology.spec().links)
      if ((inside >> link.from.value & 1) > (inside >> link.to.value & 1))
        bandwidth += static_cast<double>(link.bandwidth_bytes_per_s);
    seconds = std::max(seconds, bytes / bandwidth);
  }
  return seconds;
}

// Returns the seconds of the worst cut between `sink` and the parts that it must receive. Each part becomes
// an extra node with arcs to its holders. An arc is as wide as all links into the sink together, so the worst
// cut need not cross such an arc. Returns 0 if amounts are too large for the search.
double CutSeconds(const Topology& topology, const std::vector<PartFacts>& parts, Rank sink) {
  RatioCutProblem problem = CutsOf(topology);
  problem.sinks = {topology.NodeOf(sink).value};
  int64_t into = 0;
  for (LinkId l : topology.In(topology.NodeOf(sink))) into += topology.link(l).bandwidth_bytes_per_s;
  for (const PartFacts& part : parts) {
    std::set<Rank> holders;
    for (const Fact& fact : part.facts)
      if (std::ranges::binary_search(fact.needers, sink) && !std::ranges::binary_search(fact.holders, sink))
        holders.insert(fact.holders.begin(), fact.holders.end());
    if (holders.empty()) continue;
    const int32_t node = static_cast<int32_t>(problem.supply.size());
    problem.supply.push_back(static_cast<int64_t>(part.bytes));
    for (Rank holder : holders) problem.arcs.push_back({node, topology.NodeOf(holder).value, into});
  }
  if (std::ssize(problem.supply) == topology.num_nodes()) return 0;  // the sink receives nothing
  const std::optional<RatioCut> cut = FindRatioCut(std::move(problem));
  return cut ? static_cast<double>(cut->supply) / static_cast<double>(cut->capacity) : 0;
}

}  // namespace

BandwidthBound CustomBound(const Topology& topology, const Collective& collective,
                           const CollectiveSizes& sizes, BoundEffort effort) {
  std::vector<PartFacts> parts;
  for (PartId p(0); p.value < collective.num_parts(); ++p.value)
    if (sizes.PartBytes(p) > 0)
      parts.push_back({static_cast<double>(sizes.PartBytes(p)), FactsOf(collective, p)});
  double seconds = std::max(BlockSeconds(topology, parts, EachGpu(topology)),
                            BlockSeconds(topology, parts, EachHost(topology)));
  if (topology.num_nodes() <= kFewNodes)
    seconds = std::max(seconds, EveryCutSeconds(topology, parts));
  else
    for (const std::vector<int32_t>& key : SweepKeys(topology))
      seconds = std::max(seconds, SweepSeconds(topology, parts, key));
  const int64_t work = static_cast<int64_t>(collective.num_members()) *
                       (topology.num_links() + static_cast<int64_t>(collective.spec().post.size()));
  for (Rank rank : collective.ranks()) {
    if (effort == BoundEffort::kFast || work > kFlowWork) break;
    seconds = std::max(seconds, CutSeconds(topology, parts, rank));
  }
  return {seconds * static_cast<double>(kPsPerSecond), BoundKind::kRelaxed};
}

}  // namespace xccl
