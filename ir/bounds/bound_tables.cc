// The traffic of user-defined tables across cuts, all parts together. A part must leave a set of nodes if a
// contribution that only ranks inside hold is needed outside. It must enter the set if one that only ranks
// outside hold is needed inside. The parts' bytes add up and share the bandwidth of the cut.
//
// Blocks (each GPU, each host) as for an allreduce (bound_allreduce.cc): let E be the blocks that alone
// hold some contribution, and F those that need all of these. When the first block x knows them all, each
// block of E but x has sent at least once; later each block of F but x must receive. That makes |E|+|F|-2
// passes between blocks or, if E is one block, one for every other block of F. The blocks that must send,
// and those that must receive, give the least number of passes in any case. If nothing outside the blocks
// copies or sums, the passes of all parts share the bandwidth out of the blocks, and that into them.
//
// Cost: contributions × needers of each part, times the sweeps.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/bounds/bound_bandwidth.h"
#include "ir/bounds/demands.h"

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
    collective.Before(collective.FirstChunk(part), before);
    for (int32_t i = 0; i < collective.ChunksOf(part); ++i) {
      collective.After(ChunkId(collective.FirstChunk(part).value + i), after);
      if (!after.empty()) break;
    }
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

struct Both {
  double out = 0, in = 0;
};

// Bytes that must cross the edges of each block, and of all together. block_of[node] < 0: outside.
struct Crossing {
  std::vector<Both> block;
  double passes = 0;
};

Crossing CrossingOf(const std::vector<PartFacts>& parts, const std::vector<int32_t>& block_of,
                    int32_t blocks) {
  Crossing crossing;
  crossing.block.resize(static_cast<size_t>(blocks));
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
                    const std::vector<int32_t>& block_of, int32_t blocks) {
  const Crossing crossing = CrossingOf(parts, block_of, blocks);
  std::vector<Both> bandwidth(static_cast<size_t>(blocks));
  Both all;
  for (const Link& link : topology.spec().links) {
    const int32_t from = block_of[link.from.index()], to = block_of[link.to.index()];
    if (from == to) continue;
    const double rate = static_cast<double>(link.bandwidth_bytes_per_s);
    if (from >= 0) bandwidth[static_cast<size_t>(from)].out += rate;
    if (to >= 0) bandwidth[static_cast<size_t>(to)].in += rate;
    if (from >= 0) all.out += rate;
    if (to >= 0) all.in += rate;
  }
  double seconds = 0;
  for (size_t b = 0; b < bandwidth.size(); ++b) {
    if (bandwidth[b].out > 0) seconds = std::max(seconds, crossing.block[b].out / bandwidth[b].out);
    if (bandwidth[b].in > 0) seconds = std::max(seconds, crossing.block[b].in / bandwidth[b].in);
  }
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    if (const Node& node = topology.node(NodeId(n)); block_of[n] < 0 && (node.multicast || node.reduce))
      return seconds;
  const double least = std::min(all.out, all.in);
  return least > 0 ? std::max(seconds, crossing.passes / least) : seconds;
}

// Intervals [from, to) of cuts that one part must cross.
using Intervals = std::vector<std::pair<int32_t, int32_t>>;

void AddUnion(Intervals& intervals, double bytes, std::vector<double>& change) {
  std::ranges::sort(intervals);
  int32_t end = 0;
  for (const auto& [from, to] : intervals) {
    const int32_t begin = std::max(from, end);
    if (begin >= to) continue;
    change[static_cast<size_t>(begin)] += bytes;
    change[static_cast<size_t>(to)] -= bytes;
    end = to;
  }
}

// Cuts between nodes of different keys: cut i has the nodes with the i + 1 lowest keys on its low side.
double SweepSeconds(const Topology& topology, const std::vector<PartFacts>& parts,
                    const std::vector<int32_t>& key) {
  std::vector<int32_t> distinct(key);
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<int32_t> place;
  for (int32_t k : key)
    place.push_back(static_cast<int32_t>(std::ranges::lower_bound(distinct, k) - distinct.begin()));
  std::vector<double> up(distinct.size() + 1, 0), down(up), up_rate(up), down_rate(up);
  for (const Link& link : topology.spec().links) {
    const int32_t from = place[link.from.index()], to = place[link.to.index()];
    std::vector<double>& rate = from < to ? up_rate : down_rate;
    rate[static_cast<size_t>(std::min(from, to))] += static_cast<double>(link.bandwidth_bytes_per_s);
    rate[static_cast<size_t>(std::max(from, to))] -= static_cast<double>(link.bandwidth_bytes_per_s);
  }
  const auto ends = [&](const std::vector<int32_t>& nodes) {
    std::pair<int32_t, int32_t> least_most{place[static_cast<size_t>(nodes[0])],
                                           place[static_cast<size_t>(nodes[0])]};
    for (int32_t n : nodes) {
      least_most.first = std::min(least_most.first, place[static_cast<size_t>(n)]);
      least_most.second = std::max(least_most.second, place[static_cast<size_t>(n)]);
    }
    return least_most;
  };
  Intervals going_up, going_down;
  for (const PartFacts& part : parts) {
    going_up.clear();
    going_down.clear();
    for (const Fact& fact : part.facts) {
      const auto [holders_low, holders_high] = ends(fact.holders);
      const auto [needers_low, needers_high] = ends(fact.needers);
      if (holders_high < needers_high) going_up.emplace_back(holders_high, needers_high);
      if (needers_low < holders_low) going_down.emplace_back(needers_low, holders_low);
    }
    AddUnion(going_up, part.bytes, up);
    AddUnion(going_down, part.bytes, down);
  }
  double seconds = 0, up_bytes = 0, down_bytes = 0, up_sum = 0, down_sum = 0;
  for (size_t i = 0; i + 1 < distinct.size(); ++i) {
    up_bytes += up[i];
    down_bytes += down[i];
    up_sum += up_rate[i];
    down_sum += down_rate[i];
    if (up_sum > 0.5) seconds = std::max(seconds, up_bytes / up_sum);
    if (down_sum > 0.5) seconds = std::max(seconds, down_bytes / down_sum);
  }
  return seconds;
}

}  // namespace

double TablesBoundPs(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes) {
  const std::vector<PartFacts> parts = FactsOf(topology, collective, sizes);
  std::vector<int32_t> gpus(static_cast<size_t>(topology.num_nodes()), -1), hosts(gpus);
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    if (const auto rank = topology.RankOf(NodeId(n))) gpus[static_cast<size_t>(n)] = rank->value;
    if (const auto host = topology.node(NodeId(n)).host) hosts[static_cast<size_t>(n)] = host->value;
  }
  double seconds = std::max(BlockSeconds(topology, parts, gpus, topology.num_ranks()),
                            BlockSeconds(topology, parts, hosts, topology.num_hosts()));
  for (const std::vector<int32_t>& key : SweepKeys(topology))
    seconds = std::max(seconds, SweepSeconds(topology, parts, key));
  return seconds * static_cast<double>(kPsPerSecond);
}

}  // namespace xccl
