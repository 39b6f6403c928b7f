// Bounds for allreduce. Whatever a plan does with one byte, it obeys two facts.
//
// Cuts: a set that holds some members but not all must send out the sum of its contributions and receive
// the result. So the bytes leave it once and enter it once.
//
// Partitions: let disjoint blocks of nodes hold all members, let k blocks have members, and let nothing
// outside the blocks store, copy or sum. Then the byte passes from block to block at least 2(k-1) times.
// Proof: treat a block as one node that knows all that its nodes know. Let x be the first block that knows
// all contributions. By then each other block with members has sent at least once: k-1 messages, or k if x
// has no members. Of these blocks only x knows all, so each other one must still receive: k-1 more
// messages. So T >= 2(k-1) × bytes ÷ (bandwidth out of the blocks), and the same holds for the bandwidth
// into them. This is true of trees, rings, recursive doubling and any other plan.
//
// These partitions are tried: every GPU alone; every host as a block; the components that the faster links
// join; and, where GPUs are joined directly and all are members, the worst of all partitions. Newton's
// method on Cunningham's network strength (1985) finds the last one. If both directions of each cable have
// equal bandwidth, its bound is attained: by the theorem of Nash-Williams and Tutte, spanning trees pack at
// exactly that rate, and each serves once as in-tree and once as out-tree.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/graph/min_cut.h"
#include "base/units.h"
#include "ir/bounds/bound_bandwidth.h"
#include "ir/bounds/bound_cut.h"
#include "ir/bounds/node_cuts.h"

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

// Finds the partition with the least bandwidth between blocks ÷ (blocks - 1), in a graph of members only.
class Strength {
 public:
  explicit Strength(const Topology& topology) : nodes_(topology.num_nodes()) {
    int64_t unit = 0;
    for (const Link& link : topology.spec().links) unit = std::gcd(unit, link.bandwidth_bytes_per_s);
    std::map<std::pair<int32_t, int32_t>, int64_t> weight;
    __int128 total = 0;
    for (const Link& link : topology.spec().links) {
      const auto [a, b] = std::minmax(link.from.value, link.to.value);
      weight[{a, b}] += link.bandwidth_bytes_per_s / unit;
      total += link.bandwidth_bytes_per_s / unit;
    }
    fits_ = total < (1LL << 40);  // products with numerators and denominators stay below 2^62
    for (const auto& [ends, sum] : weight) edges_.push_back({ends.first, ends.second, sum});
  }

  // The block of every node in a worst partition.
  std::optional<std::vector<int32_t>> WorstPartition() const {
    std::vector<int32_t> best(static_cast<size_t>(nodes_));
    std::iota(best.begin(), best.end(), 0);
    int64_t p = 0, q = nodes_ - 1;  // the current value p ÷ q
    for (const Edge& edge : edges_) p += edge.weight;
    if (!fits_ || q < 1 || static_cast<__int128>(p) * q >= (static_cast<__int128>(1) << 60))
      return std::nullopt;
    while (true) {
      const std::vector<int32_t> found = BestFor(p, q);
      int64_t between = 0;
      for (const Edge& edge : edges_)
        if (found[edge.a] != found[edge.b]) between += edge.weight;
      int64_t blocks = 0;
      for (int32_t n = 0; n < nodes_; ++n) blocks += found[n] == n;
      if (blocks < 2 || static_cast<__int128>(between) * q >= static_cast<__int128>(p) * (blocks - 1))
        return best;
      best = found;
      p = between;
      q = blocks - 1;
    }
  }

 private:
  struct Edge {
    int32_t a, b;
    int64_t weight;
  };

  // The partition with the least (weight between blocks) - p/q × (blocks - 1), by Dilworth truncation: each
  // node in turn gets the most that every set of the nodes so far allows, and tight sets that meet are
  // joined. Everything is multiplied by 2q. block[n] is the least node of n's block.
  std::vector<int32_t> BestFor(int64_t p, int64_t q) const {
    std::vector<int32_t> block(static_cast<size_t>(nodes_));
    std::iota(block.begin(), block.end(), 0);
    std::vector<int64_t> given(static_cast<size_t>(nodes_), 0);
    for (int32_t v = 0; v < nodes_; ++v) {
      const int32_t source = nodes_, sink = nodes_ + 1;
      std::vector<CapacityArc> arcs;
      int64_t offset = 0;
      for (const Edge& edge : edges_) {
        if (edge.b <= v) {
          arcs.push_back({edge.a, edge.b, edge.weight * q});
          arcs.push_back({edge.b, edge.a, edge.weight * q});
        } else if (edge.a <= v) {
          arcs.push_back({edge.a, sink, edge.weight * q});
        }
      }
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
      const std::vector<bool>& full = cut.source_side;
      given[v] = cut.capacity - offset - 2 * p;
      std::vector<bool> joined(static_cast<size_t>(nodes_), false);
      for (int32_t w = 0; w <= v; ++w)
        if (full[w]) joined[block[w]] = true;
      int32_t least = v;
      for (int32_t w = v; w >= 0; --w)
        if (joined[block[w]]) least = w;
      for (int32_t w = 0; w <= v; ++w)
        if (joined[block[w]] || w == v) block[w] = least;
    }
    return block;
  }

  int32_t nodes_;
  bool fits_ = false;
  std::vector<Edge> edges_;
};

constexpr int32_t kStrengthNodes = 128;  // with so many nodes, the worst partition takes less than a second

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
      if (ps > bound.ps) bound = {ps, BoundKind::kCut};
    }
  }
  const auto try_partition = [&](const NodeGroups& block_of) {
    const double ps = PartitionSeconds(topology, collective, block_of) * scale;
    if (ps > bound.ps * (1 + 1e-12)) bound = {ps, BoundKind::kCounting, block_of};
  };
  try_partition(EachGpu(topology));
  try_partition(EachHost(topology));
  for (const NodeGroups& groups : JoinedByFastLinks(topology)) try_partition(groups);
  const bool members_alone = topology.num_nodes() == collective.num_members();
  if (members_alone && effort == BoundEffort::kExact && topology.num_nodes() <= kStrengthNodes)
    if (const auto partition = Strength(topology).WorstPartition()) try_partition(*partition);
  return bound;
}

}  // namespace xccl
