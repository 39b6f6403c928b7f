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
#include <numeric>
#include <optional>

#include "base/graph/min_cut.h"
#include "base/graph/union_find.h"
#include "base/units.h"
#include "ir/bounds/bound_bandwidth.h"
#include "ir/bounds/bound_cut.h"

namespace xccl {
namespace {

bool CopiesOrSums(const Node& node) { return node.multicast || node.reduce; }

// Seconds per byte, given blocks; block_of[node] < 0 means outside all. nullopt if the proof does not apply.
std::optional<double> PartitionSeconds(const Topology& topology, const Collective& collective,
                                       const std::vector<int32_t>& block_of) {
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    if (block_of[n] < 0 && (topology.IsGpu(NodeId(n)) || CopiesOrSums(topology.node(NodeId(n)))))
      return std::nullopt;
  std::vector<int32_t> with_members;
  for (Rank r : collective.ranks()) with_members.push_back(block_of[topology.NodeOf(r).index()]);
  std::sort(with_members.begin(), with_members.end());
  const auto last = std::unique(with_members.begin(), with_members.end());
  const double k = static_cast<double>(last - with_members.begin());
  double out = 0, in = 0;
  for (const Link& link : topology.spec().links) {
    const int32_t from = block_of[link.from.index()], to = block_of[link.to.index()];
    if (from == to) continue;
    if (from >= 0) out += static_cast<double>(link.bandwidth_bytes_per_s);
    if (to >= 0) in += static_cast<double>(link.bandwidth_bytes_per_s);
  }
  if (k < 2 || out == 0 || in == 0) return std::nullopt;
  return 2 * (k - 1) / std::min(out, in);
}

std::vector<int32_t> EachGpuAlone(const Topology& topology) {
  std::vector<int32_t> block_of(static_cast<size_t>(topology.num_nodes()), -1);
  for (int32_t r = 0; r < topology.num_ranks(); ++r) block_of[topology.NodeOf(Rank(r)).index()] = r;
  return block_of;
}

// The components that links of at least `least` join; components without a GPU are outside.
std::vector<int32_t> JoinedBy(const Topology& topology, int64_t least) {
  const size_t nodes = static_cast<size_t>(topology.num_nodes());
  UnionFind joined(nodes);
  for (const Link& link : topology.spec().links)
    if (link.bandwidth_bytes_per_s >= least) joined.Join(link.from.value, link.to.value);
  std::vector<bool> has_gpu(nodes, false);
  for (int32_t r = 0; r < topology.num_ranks(); ++r)
    has_gpu[joined.Find(topology.NodeOf(Rank(r)).value)] = true;
  std::vector<int32_t> block_of(nodes);
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    block_of[n] = has_gpu[joined.Find(n)] ? joined.Find(n) : -1;
  return block_of;
}

std::vector<int64_t> DistinctBandwidths(const Topology& topology) {
  std::vector<int64_t> bandwidths;
  for (const Link& link : topology.spec().links) bandwidths.push_back(link.bandwidth_bytes_per_s);
  std::sort(bandwidths.begin(), bandwidths.end());
  bandwidths.erase(std::unique(bandwidths.begin(), bandwidths.end()), bandwidths.end());
  return bandwidths;
}

std::vector<int32_t> EachHost(const Topology& topology) {
  std::vector<int32_t> block_of(static_cast<size_t>(topology.num_nodes()), -1);
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    if (topology.node(NodeId(n)).host) block_of[n] = topology.node(NodeId(n)).host->value;
  return block_of;
}

// Finds the partition with the least bandwidth between blocks ÷ (blocks - 1), in a graph of members only.
class Strength {
 public:
  explicit Strength(const Topology& topology) : nodes_(topology.num_nodes()) {
    int64_t unit = 0;
    for (const Link& link : topology.spec().links) unit = std::gcd(unit, link.bandwidth_bytes_per_s);
    std::vector<std::vector<int64_t>> weight(static_cast<size_t>(nodes_),
                                             std::vector<int64_t>(static_cast<size_t>(nodes_), 0));
    __int128 total = 0;
    for (const Link& link : topology.spec().links) {
      const size_t a = std::min(link.from, link.to).index(), b = std::max(link.from, link.to).index();
      weight[a][b] += link.bandwidth_bytes_per_s / unit;
      total += link.bandwidth_bytes_per_s / unit;
    }
    fits_ = total < (1LL << 40);  // products with numerators and denominators stay below 2^62
    for (int32_t a = 0; a < nodes_ && fits_; ++a)
      for (int32_t b = a + 1; b < nodes_; ++b)
        if (weight[a][b] > 0) edges_.push_back({a, b, weight[a][b]});
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

constexpr size_t kFewBandwidths = 32;

}  // namespace

BandwidthBound AllreduceBound(const Topology& topology, const Collective& collective, int64_t bytes,
                              BoundEffort effort) {
  if (collective.num_members() < 2 || bytes == 0) return {0, BoundKind::kCut};
  BandwidthBound bound;
  const double scale = static_cast<double>(bytes) * static_cast<double>(kPsPerSecond);
  for (bool reversed : {false, true}) {
    CutProblem problem;
    problem.reversed = reversed;
    problem.supply_bytes.assign(static_cast<size_t>(topology.num_nodes()), 0);
    for (Rank r : collective.ranks()) problem.sinks.push_back(topology.NodeOf(r));
    problem.supply_bytes[problem.sinks[0].index()] = 1;
    if (const std::optional<WorstCut> cut = FindWorstCut(topology, problem)) {
      const double ps = scale * static_cast<double>(cut->bytes) / static_cast<double>(cut->bytes_per_s);
      if (ps > bound.ps) bound = {ps, BoundKind::kCut};
    }
  }
  const auto try_partition = [&](const std::vector<int32_t>& block_of) {
    if (const std::optional<double> seconds = PartitionSeconds(topology, collective, block_of))
      if (*seconds * scale > bound.ps * (1 + 1e-12)) bound = {*seconds * scale, BoundKind::kCounting};
  };
  try_partition(EachGpuAlone(topology));
  try_partition(EachHost(topology));
  const std::vector<int64_t> bandwidths = DistinctBandwidths(topology);
  if (bandwidths.size() <= kFewBandwidths)
    for (size_t i = 1; i < bandwidths.size(); ++i) try_partition(JoinedBy(topology, bandwidths[i]));
  const bool members_alone = topology.num_nodes() == collective.num_members();
  if (members_alone && effort == BoundEffort::kExact && topology.num_nodes() <= kStrengthNodes)
    if (const auto partition = Strength(topology).WorstPartition()) try_partition(*partition);
  return bound;
}

}  // namespace xccl
