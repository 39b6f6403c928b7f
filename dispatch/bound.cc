// Every link that the flow between a set and the rest uses is busy at most from the least latency to its tail
// until the least latency from its head before the end; the sum of both and its own is at least the least
// latency between the two sides. So time >= bytes / flow + that latency.
// A set's flow is that of the machine from all ranks inside to all outside (Ford and Fulkerson 1956). For the
// single ranks of large machines the links at the GPU stand for it, which are at least as wide.
#include "dispatch/bound.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/graph/min_cut.h"
#include "base/graph/union_find.h"
#include "base/units.h"
#include "topologies/paths.h"

namespace xccl::dispatch {
namespace {

// So many sets of one level get a maximum flow of their own.
constexpr size_t kMostFlows = 256;
constexpr size_t kMostLevels = 8;

int64_t FlowBetween(const Topology& topology, const std::vector<bool>& from) {
  const int32_t nodes = topology.num_nodes();
  std::vector<CapacityArc> arcs;
  for (const Link& link : topology.spec().links)
    arcs.push_back({link.from.value, link.to.value, link.bandwidth_bytes_per_s});
  for (const Rank rank : AllRanks(topology.num_ranks())) {
    const int32_t node = topology.NodeOf(rank).value;
    if (from[rank.index()])
      arcs.push_back({nodes, node, kUnlimitedCapacity / topology.num_ranks()});
    else
      arcs.push_back({node, nodes + 1, kUnlimitedCapacity / topology.num_ranks()});
  }
  return FindMinCut(nodes + 2, arcs, nodes, nodes + 1).capacity;
}

int64_t WidthAt(const Topology& topology, std::span<const LinkId> links) {
  int64_t sum = 0;
  for (const LinkId l : links) sum += topology.link(l).bandwidth_bytes_per_s;
  return sum;
}

}  // namespace

Bound::Bound(const Topology& topology, const Domains& domains, const Sizes& sizes, Call call)
    : sizes_(sizes), call_(call) {
  const int32_t ranks = topology.num_ranks();
  std::set<int64_t> latencies;
  for (int32_t from = 0; from < ranks; ++from) {
    const auto from_here = LeastLatencyFrom(topology, {topology.NodeOf(Rank(from))});
    std::vector<int64_t>& row = latency_ps_.emplace_back();
    for (int32_t to = 0; to < ranks; ++to) {
      row.push_back(from_here[topology.NodeOf(Rank(to)).index()].value_or(kForeverPs));
      latencies.insert(row.back());
    }
  }
  const auto add = [&](const std::vector<int32_t>& set_of_rank) {
    const bool known = std::ranges::find(levels_, set_of_rank, &Level::set_of_rank) != levels_.end();
    if (!known && *std::ranges::max_element(set_of_rank) > 0)
      levels_.push_back(MakeLevel(topology, set_of_rank));
  };
  std::vector<int32_t> alone(ranks);
  std::iota(alone.begin(), alone.end(), 0);
  add(alone);
  add(domains.of_rank);
  for (const int64_t latency : latencies) {
    if (levels_.size() == kMostLevels) break;
    UnionFind sets(ranks);
    for (int32_t from = 0; from < ranks; ++from)
      for (int32_t to = 0; to < ranks; ++to)
        if (latency_ps_[from][to] <= latency) sets.Join(from, to);
    std::map<int32_t, int32_t> number;
    std::vector<int32_t> set_of_rank;
    for (int32_t rank = 0; rank < ranks; ++rank)
      set_of_rank.push_back(
          number.emplace(sets.Find(rank), static_cast<int32_t>(number.size())).first->second);
    add(set_of_rank);
  }
}

Bound::Level Bound::MakeLevel(const Topology& topology, std::vector<int32_t> set_of_rank) const {
  Level level;
  level.sets.resize(*std::ranges::max_element(set_of_rank) + 1);
  const int32_t ranks = topology.num_ranks();
  for (size_t s = 0; s < level.sets.size(); ++s) {
    Set& set = level.sets[s];
    std::vector<bool> inside(ranks), outside(ranks);
    int64_t out = 0, in = 0;
    for (int32_t rank = 0; rank < ranks; ++rank) {
      inside[rank] = set_of_rank[rank] == static_cast<int32_t>(s);
      outside[rank] = !inside[rank];
      if (!inside[rank]) continue;
      const NodeId node = topology.NodeOf(Rank(rank));
      out += WidthAt(topology, topology.Out(node));
      in += WidthAt(topology, topology.In(node));
    }
    const bool flows = level.sets.size() <= kMostFlows;
    set.out_bytes_per_s = flows ? FlowBetween(topology, inside) : out;
    set.in_bytes_per_s = flows ? FlowBetween(topology, outside) : in;
    set.out_latency_ps = set.in_latency_ps = kForeverPs;
  }
  for (int32_t from = 0; from < ranks; ++from)
    for (int32_t to = 0; to < ranks; ++to) {
      if (set_of_rank[from] == set_of_rank[to]) continue;
      Set &out = level.sets[set_of_rank[from]], &in = level.sets[set_of_rank[to]];
      out.out_latency_ps = std::min(out.out_latency_ps, latency_ps_[from][to]);
      in.in_latency_ps = std::min(in.in_latency_ps, latency_ps_[from][to]);
    }
  level.set_of_rank = std::move(set_of_rank);
  return level;
}

int64_t Bound::TimePs(const Needs& needs) const {
  struct Rows {
    int64_t out = 0, in = 0;
  };
  std::vector<std::vector<Rows>> rows;
  for (const Level& level : levels_) rows.emplace_back(level.sets.size());
  std::vector<int32_t> sets;
  int64_t time = 0;
  for (int32_t home = 0; home < sizes_.ranks; ++home)
    for (int64_t t = needs.first_token[home]; t < needs.first_token[home + 1]; ++t) {
      // One row's way, from its home or to it.
      for (const int32_t rank : needs.Of(t))
        time = std::max(time, call_ == Call::kDispatch ? latency_ps_[home][rank] : latency_ps_[rank][home]);
      for (size_t l = 0; l < levels_.size(); ++l) {
        sets.clear();
        for (const int32_t rank : needs.Of(t)) sets.push_back(levels_[l].set_of_rank[rank]);
        std::ranges::sort(sets);
        const int32_t own = levels_[l].set_of_rank[home];
        bool leaves = false;
        for (size_t i = 0; i < sets.size(); ++i) {
          if (sets[i] == own || (i > 0 && sets[i] == sets[i - 1])) continue;
          ++rows[l][sets[i]].in;
          leaves = true;
        }
        if (leaves) ++rows[l][own].out;
      }
    }
  const auto least = [&](int64_t count, int64_t bytes_per_s, int64_t latency_ps) {
    if (count > 0 && bytes_per_s > 0)
      time = std::max(time, latency_ps + TransferPs(count * needs.copies * sizes_.row_bytes, bytes_per_s));
  };
  for (size_t l = 0; l < levels_.size(); ++l)
    for (size_t s = 0; s < levels_[l].sets.size(); ++s) {
      const Set& set = levels_[l].sets[s];
      const Rows& of_set = rows[l][s];
      const bool turned = call_ == Call::kCombine;
      least(turned ? of_set.in : of_set.out, set.out_bytes_per_s, set.out_latency_ps);
      least(turned ? of_set.out : of_set.in, set.in_bytes_per_s, set.in_latency_ps);
    }
  return time;
}

}  // namespace xccl::dispatch
