// 1. CablesOf pairs links of opposite directions into cables.
// 2. Pack packs spanning trees of cables (synth/forest/spanning_trees.h): once as many trees as give the best
//    rate, and once a single tree, which is shallow. If the number of chunks is given, Pack tries its
//    divisors as the number of trees.
// 3. Planner::Choose decides for each packing how many of its trees are used, and for how many rounds. In
//    each round every used tree carries one chunk. Small sizes use few shallow trees, large sizes use all
//    trees for many rounds.
// 4. The packing with the least estimated time becomes the schedule.
#include "synth/forest/allreduce.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/graph/union_find.h"
#include "base/status.h"
#include "ir/sizes.h"
#include "ir/time_model.h"
#include "synth/common/allreduce_trees.h"
#include "synth/common/cost_model.h"
#include "synth/forest/spanning_trees.h"

namespace xccl::forest {
namespace {

// A cable between two GPUs: a link in each direction.
struct Cable {
  Rank a, b;
  LinkId there, back;                 // a -> b, b -> a
  int64_t bandwidth_bytes_per_s = 0;  // of the slower direction
};

// Pairs links of opposite directions, the fastest with the fastest. Leaves out links without a partner.
std::vector<Cable> PairLinks(const Topology& topology) {
  const auto speed = [&](LinkId l) { return topology.link(l).bandwidth_bytes_per_s; };
  std::map<std::pair<Rank, Rank>, std::vector<LinkId>> links;  // by (source, destination)
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.link(LinkId(l));
    links[{*topology.RankOf(link.from), *topology.RankOf(link.to)}].emplace_back(l);
  }
  for (auto& [ends, parallel] : links) std::ranges::stable_sort(parallel, std::greater<>(), speed);
  std::vector<Cable> cables;
  for (const auto& [ends, there] : links) {
    const auto back = links.find({ends.second, ends.first});
    if (ends.second < ends.first || back == links.end()) continue;
    for (size_t i = 0; i < std::min(there.size(), back->second.size()); ++i)
      cables.push_back({ends.first, ends.second, there[i], back->second[i],
                        std::min(speed(there[i]), speed(back->second[i]))});
  }
  return cables;
}

AllreduceTree UpAndDown(const SpanningTree& packed, std::span<const Cable> cables, PathTable& paths) {
  AllreduceTree tree{.weight = 1, .root = Rank(packed.root), .up = {}, .down = {}};
  std::vector<bool> reached(packed.edges.size() + 1, false);
  reached[packed.root] = true;
  for (int32_t e : packed.edges) {
    const Cable& cable = cables[e];
    const bool from_a = reached[cable.a.index()];
    const Rank parent = from_a ? cable.a : cable.b, child = from_a ? cable.b : cable.a;
    reached[child.index()] = true;
    const LinkId up[] = {from_a ? cable.back : cable.there}, down[] = {from_a ? cable.there : cable.back};
    tree.up.push_back({parent, child, paths.Intern(up)});
    tree.down.push_back({parent, child, paths.Intern(down)});
  }
  return tree;
}

// How a packing is used: its first `trees` trees in order of depth, each for `rounds` chunks.
struct Use {
  int32_t trees = 1, rounds = 1;
  double estimate_ps = std::numeric_limits<double>::infinity();
};

// Chooses how many trees of a packing are used, and for how many rounds (step 3 above).
class Planner {
 public:
  Planner(const SynthesisRequest& request, std::span<const Cable> cables, StepBudget& budget)
      : request_(request), cables_(cables), budget_(budget) {
    for (const Cable& cable : cables)
      for (LinkId l : {cable.there, cable.back}) {
        const Link& link = request.topology->link(l);
        alpha_ps_ = std::max(alpha_ps_, static_cast<double>(link.latency_ps + link.overhead_ps));
        overhead_ps_ = std::max(overhead_ps_, static_cast<double>(link.overhead_ps));
      }
    bytes_ = static_cast<double>(CollectiveSizes(*request.collective, request.size_bytes).size_bytes());
  }

  // Returns the use of `trees` with the least estimated time among those that are tried. Requires `trees`
  // sorted by depth. If `chunks` is set, uses all trees and cuts the buffer into exactly `chunks` chunks. The
  // estimate is infinite if every use takes more steps than the budget allows.
  Use Choose(std::span<const SpanningTree> trees, std::optional<int32_t> chunks) {
    Use best;
    std::vector<int64_t> load(cables_.size(), 0);
    double ps_per_byte = 0;  // of the busiest cable, for each byte that every used tree carries
    for (size_t t = 0; t < trees.size(); ++t) {
      for (int32_t e : trees[t].edges) {
        ++load[e];
        ps_per_byte = std::max(ps_per_byte, static_cast<double>(load[e]) * PsPerByte(e));
      }
      const uint32_t used = static_cast<uint32_t>(t) + 1;
      const bool deeper_next = used < trees.size() && trees[used].depth > trees[t].depth;
      if (used < trees.size() && (chunks || (!deeper_next && !std::has_single_bit(used)))) continue;
      const Use use = Rounds(static_cast<int32_t>(used), trees[t].depth, ps_per_byte, chunks);
      if (use.estimate_ps * kNear < best.estimate_ps) best = use;
    }
    return best;
  }

 private:
  static constexpr double kLeastChunkBytes = 16384;  // smaller chunks cost more to handle than they gain
  // Average wait of a chunk at each hop, in times of a chunk on the slowest cable; fitted to simulations.
  static constexpr double kWait = 0.4;
  // If waits are at most this share of the busiest cable's time, more chunks are not tried.
  static constexpr double kGoodEnough = 0.004;

  double PsPerByte(int32_t cable) const {
    return 1e12 / static_cast<double>(cables_[cable].bandwidth_bytes_per_s);
  }

  Use Rounds(int32_t trees, int32_t depth, double ps_per_byte, std::optional<int32_t> chunks) {
    const double busy_ps = bytes_ * ps_per_byte / trees;
    double slowest = 0;
    for (int32_t e = 0; e < static_cast<int32_t>(cables_.size()); ++e)
      slowest = std::max(slowest, PsPerByte(e));
    const int32_t ranks = request_.topology->num_ranks();
    const double transfers = 2.0 * trees * (ranks - 1);
    Use best;
    for (int32_t rounds = 1;; rounds = rounds < 4 ? rounds + 1 : rounds + rounds / 4) {
      if (chunks) rounds = *chunks / trees;
      // Each chunk starts one step after the chunk before.
      if (!budget_.Allows(2 * depth + trees * rounds - 1)) return best;
      const double chunk_bytes = bytes_ / trees / rounds;
      const double waits_ps = kWait * 2 * depth * chunk_bytes * slowest;
      Use use{trees, rounds, 0};
      if (request_.model == TimeModel::kPipelined) {
        use.estimate_ps = busy_ps * (1 + overhead_ps_ / std::max(1.0, chunk_bytes * slowest)) + waits_ps +
                          2 * depth * alpha_ps_;
      } else {
        const double hop_ps = chunk_bytes * slowest + alpha_ps_;
        use.estimate_ps = busy_ps * hop_ps / std::max(1.0, chunk_bytes * slowest) + 2 * depth * hop_ps;
      }
      if (use.estimate_ps < best.estimate_ps) best = use;
      const int32_t more = rounds + rounds / 4 + 1;
      if (chunks || waits_ps <= kGoodEnough * busy_ps || chunk_bytes < 2 * kLeastChunkBytes ||
          more * transfers > static_cast<double>(kManyTransfers))
        return best;
    }
  }

  const SynthesisRequest& request_;
  std::span<const Cable> cables_;
  StepBudget& budget_;
  double alpha_ps_ = 0, overhead_ps_ = 0, bytes_ = 0;
};

// A packing and how it is used.
struct Packed {
  TreePacking packing;
  Use use;
};

constexpr int32_t kMostGivenTrees = 128;  // the most trees that are tried for a given number of chunks

constexpr int64_t kMostCapacity = int64_t{1} << 39;  // in units of UnitOf; all capacities sum to < 2 × this

// Returns the unit of capacities, in bytes per second: the greatest common divisor of the bandwidths, or a
// larger unit if the capacities would add up to more than kMostCapacity.
int64_t UnitOf(std::span<const Cable> cables) {
  int64_t divisor = 0;
  __int128 total = 0;
  for (const Cable& cable : cables) {
    divisor = std::gcd(divisor, cable.bandwidth_bytes_per_s);
    total += cable.bandwidth_bytes_per_s;
  }
  return std::max(divisor, static_cast<int64_t>(total / kMostCapacity));
}

bool JoinAll(std::span<const Cable> cables, int32_t ranks) {
  UnionFind joined(static_cast<size_t>(ranks));
  for (const Cable& cable : cables) ranks -= joined.Join(cable.a.value, cable.b.value) ? 1 : 0;
  return ranks == 1;
}

// Returns the cables of at least one unit of bandwidth. Returns an error if they do not join all ranks.
StatusOr<std::vector<Cable>> CablesOf(const Topology& topology) {
  std::vector<Cable> cables = PairLinks(topology);
  if (!JoinAll(cables, topology.num_ranks()))
    return InvalidInput(
        fmt::format("forest: {}: some ranks are joined one way only; spanning trees need links both ways",
                    topology.name()));
  const int64_t unit = UnitOf(cables);
  std::erase_if(cables, [unit](const Cable& cable) { return cable.bandwidth_bytes_per_s < unit; });
  if (!JoinAll(cables, topology.num_ranks()))
    return InvalidInput(
        fmt::format("forest: {}: some ranks are joined by less than {} B/s, 2^-39 of all bandwidth; spanning "
                    "trees need more",
                    topology.name(), unit));
  return cables;
}

// Packs trees several times and returns the packing with the least estimated time. Tries one shallow tree,
// and the number of trees that PackSpanningTrees chooses. If the number of chunks is given, tries its
// divisors up to kMostGivenTrees as the number of trees instead. Returns nullopt if every packing takes more
// steps than `budget` allows.
std::optional<Packed> Pack(const SynthesisRequest& request, std::span<const Cable> cables,
                           StepBudget& budget) {
  std::vector<CapacityEdge> edges;
  const int64_t unit = UnitOf(cables);
  for (const Cable& cable : cables)
    edges.push_back({cable.a.value, cable.b.value, cable.bandwidth_bytes_per_s / unit});
  Planner planner(request, cables, budget);
  TreePackingLimits limits;
  limits.stopped = request.limits.deadline;
  if (request.limits.work_units > 0) limits.work = request.limits.work_units;
  std::vector<std::optional<int32_t>> numbers = {1, std::nullopt};
  const std::optional<int32_t> chunks = request.limits.chunks;
  if (chunks) {
    numbers.clear();
    for (int32_t trees = 1; trees <= std::min(*chunks, kMostGivenTrees); ++trees)
      if (*chunks % trees == 0) numbers.emplace_back(trees);
  }
  std::optional<Packed> best;
  for (const std::optional<int32_t>& trees : numbers) {
    limits.trees = trees;
    std::optional<TreePacking> packing = PackSpanningTrees(request.topology->num_ranks(), edges, limits);
    XCCL_CHECK(packing.has_value());
    std::stable_sort(packing->trees.begin(), packing->trees.end(),
                     [](const SpanningTree& a, const SpanningTree& b) { return a.depth < b.depth; });
    const Use use = planner.Choose(packing->trees, chunks);
    if (std::isfinite(use.estimate_ps) && (!best || use.estimate_ps * kNear < best->use.estimate_ps))
      best = Packed{*std::move(packing), use};
  }
  return best;
}

}  // namespace

Status NeedsGpusAlone(const SynthesisRequest& request) {
  const int32_t members = request.collective->num_members(), nodes = request.topology->num_nodes();
  if (members == nodes) return OkStatus();
  return InvalidInput(fmt::format(
      "forest: {}: {} members among {} nodes; spanning trees need GPUs alone, all of them members",
      request.topology->name(), members, nodes));
}

bool HasEvenCables(const SynthesisRequest& request) {
  if (!NeedsGpusAlone(request).ok()) return false;
  std::map<std::pair<NodeId, NodeId>, int64_t> surplus;
  for (const Link& link : request.topology->spec().links) {
    if (link.from < link.to) {
      surplus[{link.from, link.to}] += link.bandwidth_bytes_per_s;
    } else {
      surplus[{link.to, link.from}] -= link.bandwidth_bytes_per_s;
    }
  }
  return std::all_of(surplus.begin(), surplus.end(), [](const auto& pair) { return pair.second == 0; });
}

StatusOr<Synthesis> SynthesizeAllreduceTrees(const SynthesisRequest& request, StepBudget& budget) {
  const Topology& topology = *request.topology;
  const Collective& collective = *request.collective;
  XCCL_RETURN_IF_ERROR(NeedsGpusAlone(request));
  if (collective.num_members() == 1) return NothingToMove("forest", request);
  XCCL_ASSIGN_OR_RETURN(const std::vector<Cable> cables, CablesOf(topology));
  const std::optional<Packed> packed = Pack(request, cables, budget);
  if (!packed) return budget.Refusal();
  AllreduceTrees trees;
  int32_t depth = 0;
  for (int32_t t = 0; t < packed->use.trees; ++t) {
    const SpanningTree& tree = packed->packing.trees[t];
    depth = std::max(depth, tree.depth);
    trees.trees.push_back(UpAndDown(tree, cables, trees.paths));
  }
  ChunkedSchedule made = MakeAllreduceSchedule(
      trees, std::vector<int64_t>(static_cast<size_t>(packed->use.rounds), 1), collective);
  std::string note = fmt::format(
      "{} of {} spanning trees, of depth {} at most; all of them: {:.2f}% of what partitions allow",
      trees.trees.size(), packed->packing.trees.size(), depth,
      100 * packed->packing.rate / packed->packing.bound);
  return Synthesis{std::move(made.collective), std::move(made.schedule), false, "forest", std::move(note)};
}

}  // namespace xccl::forest
