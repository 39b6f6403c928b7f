// Bounds for user-defined tables, from the contributions that some rank needs and does not hold.
//
// Cuts, all parts together: a part must leave a set of nodes if a contribution that only ranks inside hold is
// needed outside. It must enter the set if one that only ranks outside hold is needed inside. The parts'
// bytes add up and share the bandwidth of the cut.
//
// Blocks (each GPU, each host) as for an allreduce (bound_allreduce.cc): let E be the blocks that alone
// hold some contribution, and F those that need all of these. When the first block x knows them all, each
// block of E but x has sent at least once; later each block of F but x must receive. That makes |E|+|F|-2
// passes between blocks or, if E is one block, one for every other block of F. The blocks that must send,
// and those that must receive, give the least number of passes in any case. If nothing outside the blocks
// copies or sums, the passes of all parts share the bandwidth out of the blocks, and that into them.
//
// Cost: contributions × needers of each part, times the sweeps.
//
// Each destination by itself: it gets each part that it needs at most once, over links that all parts share.
// Each part has a source node of its own, joined to all its holders without limit. So a cut counts the part
// only if all its holders lie behind the cut. The worst cut of the extended graph is a bound.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/graph/min_cut.h"
#include "base/units.h"
#include "ir/bounds/bound_bandwidth.h"
#include "ir/bounds/needs.h"
#include "ir/bounds/node_cuts.h"

namespace xccl {
namespace {

// A contribution, or several with the same holders and the same needers.
struct Fact {
  std::vector<int32_t> holders, needers;  // nodes
};
struct PartFacts {
  double bytes = 0;
  std::vector<Fact> facts;
};

// The contributions that some rank needs and does not hold.
std::vector<PartFacts> FactsOf(const Topology& topology, const Collective& collective,
                               const CollectiveSizes& sizes) {
  std::vector<PartFacts> all;
  std::vector<Holding> before, after;
  for (int32_t p = 0; p < collective.num_parts(); ++p) {
    const PartId part(p);
    if (sizes.PartBytes(part) == 0) continue;
    const std::optional<ChunkId> chunk = UsedChunk(collective, part);
    if (!chunk) continue;
    collective.Before(*chunk, before);
    collective.After(*chunk, after);
    std::map<Rank, Fact> of;
    for (const Holding& held : before)
      for (Rank c : held.contributions) of[c].holders.push_back(topology.NodeOf(held.rank).value);
    for (const Holding& wanted : after) {
      for (Rank c : wanted.contributions)
        if (const auto found = of.find(c); found != of.end())
          found->second.needers.push_back(topology.NodeOf(wanted.rank).value);
    }
    PartFacts facts{static_cast<double>(sizes.PartBytes(part)), {}};
    std::set<std::pair<std::vector<int32_t>, std::vector<int32_t>>> seen;
    for (auto& [c, fact] : of) {
      std::ranges::sort(fact.holders);
      std::ranges::sort(fact.needers);
      if (std::ranges::includes(fact.holders, fact.needers)) continue;
      if (seen.emplace(fact.holders, fact.needers).second) facts.facts.push_back(std::move(fact));
    }
    if (!facts.facts.empty()) all.push_back(std::move(facts));
  }
  return all;
}

// Bytes that must cross the edges of each block, and of all together. block_of[node] < 0: outside.
struct Crossing {
  std::vector<OutAndIn> block;
  double passes = 0;
};

Crossing CrossingOf(const std::vector<PartFacts>& parts, const NodeGroups& block_of, size_t blocks) {
  Crossing crossing;
  crossing.block.resize(blocks);
  const auto blocks_of = [&](const std::vector<int32_t>& nodes) {
    std::vector<int32_t> found;
    for (int32_t n : nodes) found.push_back(block_of[static_cast<size_t>(n)]);
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  };
  for (const PartFacts& part : parts) {
    std::set<int32_t> leaves, enters, alone;
    std::map<int32_t, size_t> needed;  // by block: contributions that it needs and one block alone holds
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
  const Crossing crossing = CrossingOf(parts, block_of, bandwidth.size());
  const double seconds = SecondsAround(crossing.block, bandwidth);
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    if (const Node& node = topology.node(NodeId(n)); block_of[n] < 0 && (node.multicast || node.reduce))
      return seconds;
  OutAndIn all;
  for (const OutAndIn& block : bandwidth) {
    all.out += block.out;
    all.in += block.in;
  }
  const double least = std::min(all.out, all.in);
  return least > 0 ? std::max(seconds, crossing.passes / least) : seconds;
}

// Intervals [low, high) of cuts that one part must cross.
using Intervals = std::vector<std::pair<int32_t, int32_t>>;

void AddUnion(Intervals& intervals, bool up, double bytes, Sweep& sweep) {
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
  Sweep sweep(topology, key);
  const auto place = [&](int32_t node) { return sweep.PlaceOf(node); };
  const auto ends = [&](const std::vector<int32_t>& nodes) {
    const auto [low, high] = std::ranges::minmax_element(nodes, {}, place);
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

struct Wanted {
  double bytes;
  std::set<int32_t> holders;  // nodes
};

// The parts that the node must receive.
std::vector<Wanted> WantedBy(const std::vector<PartFacts>& parts, int32_t node) {
  std::vector<Wanted> all;
  for (const PartFacts& part : parts) {
    Wanted wanted{part.bytes, {}};
    for (const Fact& fact : part.facts)
      if (std::ranges::binary_search(fact.needers, node) && !std::ranges::binary_search(fact.holders, node))
        wanted.holders.insert(fact.holders.begin(), fact.holders.end());
    if (!wanted.holders.empty()) all.push_back(std::move(wanted));
  }
  return all;
}

// Newton's method as in base/graph/ratio_cut.cc, on doubles turned into capacities; any cut that is found is
// evaluated by itself, so rounding costs sharpness only.
double CutSeconds(const Topology& topology, const std::vector<Wanted>& wanted, int32_t sink) {
  constexpr double kUnits = 1LL << 40;
  const int32_t nodes = topology.num_nodes(), source = nodes;
  double total = 0;
  for (const Wanted& part : wanted) total += part.bytes;
  double into = 0;
  for (LinkId l : topology.In(NodeId(sink)))
    into += static_cast<double>(topology.link(l).bandwidth_bytes_per_s);
  double seconds = total / into;
  while (true) {
    std::vector<CapacityArc> arcs;
    for (const Link& link : topology.spec().links)
      arcs.push_back(
          {link.from.value, link.to.value,
           static_cast<int64_t>(
               std::min(1.0, static_cast<double>(link.bandwidth_bytes_per_s) * seconds / total) * kUnits)});
    for (size_t i = 0; i < wanted.size(); ++i) {
      const int32_t part = nodes + 1 + static_cast<int32_t>(i);
      arcs.push_back({source, part, static_cast<int64_t>(wanted[i].bytes / total * kUnits)});
      for (int32_t holder : wanted[i].holders) arcs.push_back({part, holder, kUnlimitedCapacity});
    }
    const int32_t all_nodes = nodes + 1 + static_cast<int32_t>(wanted.size());
    const std::vector<bool> side = FindMinCut(all_nodes, arcs, source, sink).source_side;
    double inside = 0, out = 0;
    for (const Wanted& part : wanted) {
      const bool all = std::ranges::all_of(part.holders, [&](int32_t h) { return side[h]; });
      if (all) inside += part.bytes;
    }
    for (const Link& link : topology.spec().links)
      if (side[link.from.index()] && !side[link.to.index()])
        out += static_cast<double>(link.bandwidth_bytes_per_s);
    if (out == 0 || inside / out <= seconds * (1 + 1e-9)) return seconds;
    seconds = inside / out;
  }
}

constexpr int64_t kFlowWork = 20'000'000;  // destinations × (links + entries) up to which flows are computed

}  // namespace

BandwidthBound CustomBound(const Topology& topology, const Collective& collective,
                           const CollectiveSizes& sizes, BoundEffort effort) {
  const std::vector<PartFacts> parts = FactsOf(topology, collective, sizes);
  double seconds = std::max(BlockSeconds(topology, parts, EachGpu(topology)),
                            BlockSeconds(topology, parts, EachHost(topology)));
  for (const std::vector<int32_t>& key : SweepKeys(topology))
    seconds = std::max(seconds, SweepSeconds(topology, parts, key));
  const int64_t work = static_cast<int64_t>(collective.num_members()) *
                       (topology.num_links() + static_cast<int64_t>(collective.spec().post.size()));
  for (Rank rank : collective.ranks()) {
    if (effort == BoundEffort::kFast || work > kFlowWork) break;
    const int32_t node = topology.NodeOf(rank).value;
    if (const std::vector<Wanted> wanted = WantedBy(parts, node); !wanted.empty())
      seconds = std::max(seconds, CutSeconds(topology, wanted, node));
  }
  return {seconds * static_cast<double>(kPsPerSecond), BoundKind::kRelaxed};
}

}  // namespace xccl
