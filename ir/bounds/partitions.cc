// How the partitions are made:
// 1. The groups of node_cuts.h are taken, except groupings that leave a copying node outside all groups.
// 2. Strength finds the worst partition of the GPUs by Newton's method. From a ratio of bandwidth to blocks
//    it finds the partition that is farthest below the ratio. The ratio of that partition is the next ratio.
//    Dilworth's truncation finds the partition, with one minimum cut per GPU.
// 3. One minimum cut per block assigns the nodes that cannot copy to blocks.
#include "ir/bounds/partitions.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/graph/min_cut.h"
#include "ir/bounds/bound_cut.h"

namespace xccl {
namespace {

// Limits up to which the searches take less than a second: nodes of the machine for the worst partition, and
// blocks × links for the cuts around blocks.
constexpr int32_t kStrengthNodes = 128;
constexpr int64_t kBorderWork = 1 << 19;

bool Copies(const Topology& topology, int32_t node) {
  const Node& of = topology.node(NodeId(node));
  return topology.IsGpu(NodeId(node)) || of.multicast || of.reduce;
}

bool LinksAreTheSameBothWays(const Topology& topology) {
  std::map<std::pair<int32_t, int32_t>, int64_t> more;
  for (const Link& link : topology.spec().links) {
    const auto [a, b] = std::minmax(link.from.value, link.to.value);
    more[{a, b}] += link.from.value == a ? link.bandwidth_bytes_per_s : -link.bandwidth_bytes_per_s;
  }
  return std::ranges::all_of(more, [](const auto& of) { return of.second == 0; });
}

// Finds the partition of the GPUs with the least bandwidth out of the blocks ÷ (blocks - 1). Renumbers the
// nodes so that GPUs come first, by rank.
class Strength {
 public:
  Strength(const Topology& topology, bool reversed)
      : gpus_(topology.num_ranks()), nodes_(topology.num_nodes()) {
    std::vector<int32_t> number(static_cast<size_t>(nodes_), -1);
    for (int32_t r = 0; r < gpus_; ++r) number[topology.NodeOf(Rank(r)).index()] = r;
    int32_t next = gpus_;
    for (int32_t& of : number)
      if (of < 0) of = next++;
    int64_t unit = 0;
    for (const Link& link : topology.spec().links) unit = std::gcd(unit, link.bandwidth_bytes_per_s);
    std::map<std::pair<int32_t, int32_t>, int64_t> capacity;
    __int128 total = 0;
    for (const Link& link : topology.spec().links) {
      std::pair<int32_t, int32_t> ends = {number[link.from.index()], number[link.to.index()]};
      if (reversed) std::swap(ends.first, ends.second);
      capacity[ends] += link.bandwidth_bytes_per_s / unit;
      total += link.bandwidth_bytes_per_s / unit;
      if (ends.first < gpus_) out_ += link.bandwidth_bytes_per_s / unit;
    }
    fits_ = total < (1LL << 40);  // so products with p and q stay below 2^62
    for (const auto& [ends, sum] : capacity) arcs_.push_back({ends.first, ends.second, sum});
  }

  // Returns for each rank its block in a worst partition. A block's number is its lowest rank. Returns
  // nullopt if there are fewer than two GPUs, or if the numbers are too large for exact arithmetic.
  std::optional<std::vector<int32_t>> WorstPartition() const {
    std::vector<int32_t> best(static_cast<size_t>(gpus_));
    std::iota(best.begin(), best.end(), 0);
    int64_t p = out_, q = gpus_ - 1;  // the current ratio is p ÷ q
    if (!fits_ || q < 1 || static_cast<__int128>(p) * q >= (static_cast<__int128>(1) << 60))
      return std::nullopt;
    while (true) {
      auto [block_of, least] = BestFor(p, q);
      int64_t blocks = 0;
      for (int32_t r = 0; r < gpus_; ++r) blocks += block_of[r] == r;
      // least = q × bandwidth - p × blocks
      const int64_t bandwidth = (least + p * blocks) / q;
      if (blocks < 2 || static_cast<__int128>(bandwidth) * q >= static_cast<__int128>(p) * (blocks - 1))
        return best;
      best = std::move(block_of);
      p = bandwidth;
      q = blocks - 1;
    }
  }

 private:
  struct Partition {
    std::vector<int32_t> block_of;
    int64_t least = 0;
  };

  // Returns the partition with the least sum over its blocks of q × bandwidth - p, by Dilworth's truncation.
  // Gives each GPU in turn the largest value for which the values of every set of GPUs add up to at most q ×
  // (bandwidth out of the set) - p. Sets that reach this limit and share a GPU are joined to one block.
  Partition BestFor(int64_t p, int64_t q) const {
    std::vector<int32_t> block(static_cast<size_t>(gpus_));
    std::iota(block.begin(), block.end(), 0);
    std::vector<int64_t> given(static_cast<size_t>(gpus_), 0);
    const int32_t source = nodes_, sink = nodes_ + 1;
    for (int32_t v = 0; v < gpus_; ++v) {
      std::vector<CapacityArc> arcs;
      int64_t offset = 0;
      const auto is_later = [&](int32_t node) { return node > v && node < gpus_; };
      for (const CapacityArc& arc : arcs_)
        if (!is_later(arc.from))
          arcs.push_back({arc.from, is_later(arc.to) ? sink : arc.to, arc.capacity * q});
      for (int32_t w = 0; w < v; ++w) {
        if (given[w] > 0) {
          arcs.push_back({source, w, given[w]});
          offset += given[w];
        } else if (given[w] < 0) {
          arcs.push_back({w, sink, -given[w]});
        }
      }
      arcs.push_back({source, v, kUnlimitedCapacity});
      const MinimumCut cut = FindMinCut(nodes_ + 2, arcs, source, sink);
      given[v] = cut.capacity - offset - p;
      std::vector<bool> joined(static_cast<size_t>(gpus_), false);
      joined[block[v]] = true;
      for (int32_t w = 0; w < v; ++w)
        if (cut.source_side[w]) joined[block[w]] = true;
      int32_t least = v;
      for (int32_t w = v; w >= 0; --w)
        if (joined[block[w]]) least = w;
      for (int32_t w = 0; w <= v; ++w)
        if (joined[block[w]]) block[w] = least;
    }
    return {std::move(block), std::accumulate(given.begin(), given.end(), int64_t{0})};
  }

  int32_t gpus_, nodes_;
  bool fits_ = false;
  int64_t out_ = 0;  // bandwidth of all links that leave GPUs
  std::vector<CapacityArc> arcs_;
};

// Assigns nodes that cannot copy (plain switches, NICs) to blocks, so that the bandwidth out of each block is
// least. With `into`, the bandwidth into each block is least. GPUs and copying switches stay in their blocks.
NodeGroups WithLeastBorders(const Topology& topology, const NodeGroups& block_of, bool into) {
  const std::vector<CapacityArc> links = CutsOf(topology, into).arcs;
  const int32_t source = topology.num_nodes(), sink = source + 1;
  const int32_t blocks = *std::ranges::max_element(block_of) + 1;
  NodeGroups with(block_of.size(), -1);
  for (int32_t b = 0; b < blocks; ++b) {
    std::vector<CapacityArc> arcs = links;
    bool has_nodes = false;
    for (int32_t n = 0; n < topology.num_nodes(); ++n) {
      if (with[n] >= 0 || (Copies(topology, n) && block_of[n] != b)) {
        arcs.push_back({n, sink, kUnlimitedCapacity});
      } else if (Copies(topology, n)) {
        arcs.push_back({source, n, kUnlimitedCapacity});
        has_nodes = true;
      }
    }
    if (!has_nodes) continue;
    const MinimumCut cut = FindMinCut(sink + 1, arcs, source, sink);
    for (int32_t n = 0; n < topology.num_nodes(); ++n)
      if (cut.source_side[n]) with[n] = b;
  }
  return with;
}

}  // namespace

std::vector<NodeGroups> Partitions(const Topology& topology, const Collective& collective,
                                   BoundEffort effort) {
  std::vector<NodeGroups> partitions = JoinedByFastLinks(topology);
  partitions.push_back(EachGpu(topology));
  partitions.push_back(EachHost(topology));
  std::erase_if(partitions, [&](const NodeGroups& block_of) {
    for (int32_t n = 0; n < topology.num_nodes(); ++n)
      if (block_of[n] < 0 && Copies(topology, n)) return true;
    return false;
  });
  const bool is_same_both_ways = LinksAreTheSameBothWays(topology);
  int32_t copying = 0;
  for (int32_t n = 0; n < topology.num_nodes(); ++n) copying += Copies(topology, n);
  if (copying == collective.num_members() && effort == BoundEffort::kExact &&
      topology.num_nodes() <= kStrengthNodes)
    for (const bool reversed : {false, true}) {
      if (reversed && is_same_both_ways) continue;
      const auto worst = Strength(topology, reversed).WorstPartition();
      if (!worst) continue;
      NodeGroups& block_of = partitions.emplace_back(static_cast<size_t>(topology.num_nodes()), -1);
      for (int32_t r = 0; r < topology.num_ranks(); ++r)
        block_of[topology.NodeOf(Rank(r)).index()] = (*worst)[r];
    }
  if (copying == topology.num_nodes()) return partitions;
  for (size_t i = 0, all = partitions.size(); i < all; ++i) {
    const std::set<int32_t> distinct(partitions[i].begin(), partitions[i].end());
    const int64_t blocks = std::ssize(distinct);
    if (blocks * topology.num_links() > kBorderWork) continue;
    for (const bool into : {false, true})
      if (!into || !is_same_both_ways) partitions.push_back(WithLeastBorders(topology, partitions[i], into));
  }
  return partitions;
}

}  // namespace xccl
