// 1. HostsProblem makes the linear program of the folded machine. A host's demand is that of its ranks.
// 2. A tree between hosts may carry more than one cable should. Deal gives each part the trees of its root's
//    host, or one of them. If a few trees carry much (allreduce, broadcast, reduce), Cut divides each tree
//    into pieces.
// 3. Unfolder unfolds one piece after another, the heaviest piece of Cut first, over the cables that are
//    least loaded.
#include "synth/forest/folded_packing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/schedule.h"
#include "synth/common/cost_model.h"
#include "synth/common/fractional_packing.h"
#include "synth/common/reverse.h"
#include "synth/forest/folded_hosts.h"
#include "synth/forest/request.h"
#include "synth/forest/unfolder.h"

namespace xccl::forest {
namespace {

// The number of pieces at which Cut aims, of all trees together, for each cable of the host with the most
// cables. Whole pieces can then be dealt to cables so that no cable has more than about 1 + 1 /
// kPiecesPerCable times the even load.
constexpr int64_t kPiecesPerCable = 8;

double SecondsPerPs(const Task& task) {
  return 1e-12 / static_cast<double>(std::max<int64_t>(1, task.sizes.size_bytes()));
}

// Returns, by member, the share of all bytes that starts at the member. With one root, all bytes start there.
std::vector<double> SharesOf(const Task& task) {
  const auto members = static_cast<size_t>(task.collective.num_members());
  std::vector<double> shares(members, 1.0 / static_cast<double>(members));
  if (!HasManyRoots(task.collective)) {
    shares.assign(members, 0);
    shares[static_cast<size_t>(*task.collective.MemberIndex(*task.collective.spec().root))] = 1;
  } else if (IsUneven(task.collective)) {
    for (size_t m = 0; m < members; ++m) {
      const PartId part(static_cast<int64_t>(m));
      shares[m] = task.collective.AlwaysEmpty(task.collective.FirstChunk(part))
                      ? 0
                      : static_cast<double>(std::max<int64_t>(1, task.sizes.PartBytes(part))) /
                            static_cast<double>(std::max<int64_t>(1, task.sizes.size_bytes()));
    }
  }
  return shares;
}

// Returns the linear program of trees between hosts. Hosts without demand are no roots.
PackingProblem HostsProblem(const Task& task, const FoldedHosts& folded, const PackingAim& aim) {
  PackingProblem problem = PlainPacking(folded.topology, AllRanks(folded.topology.num_ranks()));
  const std::vector<double> shares = SharesOf(task);
  std::vector<double> demand(problem.members.size(), 0.0);
  for (size_t m = 0; m < shares.size(); ++m)
    demand[folded.host_of_rank[task.collective.ranks()[m].index()].index()] += shares[m];
  problem.roots.clear();
  problem.demand.clear();
  for (size_t h = 0; h < demand.size(); ++h) {
    if (demand[h] == 0) continue;
    problem.roots.emplace_back(static_cast<int64_t>(h));
    problem.demand.push_back(demand[h]);
  }
  problem.stopped = task.stopped;
  const double hosts = static_cast<double>(problem.members.size());
  problem.s_per_ps = aim.latency_weight.value_or(1) * SecondsPerPs(task) * hosts;
  if (LatencyCounts(task)) problem.wait_s_per_ps = SecondsPerPs(task);
  return problem;
}

// Returns the arcs of a tree between hosts. Each arc lists the nodes of the folded machine that it passes.
std::vector<HostArc> ArcsOf(const FractionalPacking& packing, std::span<const PackedArc> arcs,
                            const Topology& hosts) {
  std::vector<HostArc> made;
  for (const PackedArc& arc : arcs) {
    HostArc& nodes = made.emplace_back(HostArc{hosts.NodeOf(arc.from)});
    for (const LinkId l : packing.Links(arc)) nodes.push_back(hosts.link(l).to);
  }
  return made;
}

// A share of all bytes that one tree carries for one part.
struct Piece {
  size_t tree = 0;  // in the packing
  Rank root;
  PartId part;
  double share = 0;
};

// Deals the trees of each host to its ranks. A part gets all trees of its host. If the plan would then have
// too many transfers, a part gets only the tree that is farthest behind its share.
std::vector<Piece> Deal(const Task& task, const FoldedHosts& folded, const PackingProblem& problem,
                        const FractionalPacking& packing) {
  const std::vector<double> shares = SharesOf(task);
  std::vector<std::vector<size_t>> trees(problem.members.size());
  for (size_t t = 0; t < packing.trees.size(); ++t)
    trees[problem.roots[static_cast<size_t>(packing.trees[t].root)].index()].push_back(t);
  int64_t all = 0;
  for (size_t m = 0; m < shares.size(); ++m)
    all +=
        static_cast<int64_t>(trees[folded.host_of_rank[task.collective.ranks()[m].index()].index()].size());
  const bool is_one_each = all * task.collective.num_members() > kManyTransfers;
  std::vector<double> dealt(packing.trees.size(), 0.0), total(problem.members.size(), 0.0);
  std::vector<Piece> pieces;
  for (size_t m = 0; m < shares.size(); ++m) {
    if (shares[m] == 0) continue;
    const Rank root = task.collective.ranks()[m];
    const size_t host = folded.host_of_rank[root.index()].index();
    const PartId part(HasManyRoots(task.collective) ? static_cast<int64_t>(m) : 0);
    total[host] += shares[m];
    const auto behind = [&](size_t t) { return packing.trees[t].weight * total[host] - dealt[t]; };
    const size_t next = *std::ranges::max_element(trees[host], {}, behind);
    for (const size_t t : trees[host]) {
      if (is_one_each && t != next) continue;
      const double share = is_one_each ? shares[m] : shares[m] * packing.trees[t].weight;
      dealt[t] += share;
      pieces.push_back({t, root, part, share});
    }
  }
  return pieces;
}

int64_t MostCables(const Topology& machine, const FoldedHosts& folded) {
  std::vector<int64_t> cables(static_cast<size_t>(folded.topology.num_ranks()), 0);
  for (const Link& link : machine.spec().links) {
    const NodeId from = folded.place[link.from.index()];
    if (from != folded.place[link.to.index()] && folded.topology.IsGpu(from)) ++cables[from.index()];
  }
  return *std::ranges::max_element(cables);
}

// Cuts trees into pieces of about equal shares, so that a heavy tree can use several cables. Leaves out trees
// that carry less than a quarter of a piece, unless all do. `root_of` returns the rank that is the root of a
// piece, given the tree's host. Returns the heaviest piece first.
template <typename RootOf>
std::vector<Piece> Cut(const Task& task, const FoldedHosts& folded, const PackingProblem& problem,
                       const FractionalPacking& packing, RootOf root_of) {
  const int64_t cables = MostCables(task.topology, folded);
  const int64_t most = kPiecesPerCable * cables;
  const auto wanted = static_cast<double>(
      std::clamp<int64_t>(task.sizes.size_bytes() / kLeastPieceBytes, std::min(cables, most), most));
  double total = 0;
  const auto is_kept = [&](const FractionalTree& tree) { return 4 * wanted * tree.weight >= 1; };
  for (const FractionalTree& tree : packing.trees) total += is_kept(tree) ? tree.weight : 0;
  std::vector<Piece> pieces;
  for (size_t t = 0; t < packing.trees.size(); ++t) {
    const FractionalTree& tree = packing.trees[t];
    if (total > 0 && !is_kept(tree)) continue;
    const double share = total > 0 ? tree.weight / total : tree.weight;
    const auto number = std::max<int64_t>(1, std::llround(share * wanted));
    for (int64_t i = 0; i < number; ++i)
      pieces.push_back({t, root_of(problem.roots[static_cast<size_t>(tree.root)]), PartId(0),
                        share / static_cast<double>(number)});
  }
  std::ranges::stable_sort(pieces, std::greater<>(), &Piece::share);
  return pieces;
}

std::vector<int64_t> WeightsOf(const std::vector<Piece>& pieces) {
  std::vector<double> shares;
  double total = 0;
  for (const Piece& piece : pieces) total += piece.share;
  for (const Piece& piece : pieces) shares.push_back(piece.share / total);
  return RoundToIntegerWeights(shares);
}

Status NotUnfolded() {
  return LimitReached(
      "forest: trees between hosts do not unfold: the gpus of a host do not reach each other inside it");
}

LinkLoads LoadsFor(const Task& task, const FractionalPacking& packing) {
  return {.s_per_byte = std::vector<double>(static_cast<size_t>(task.topology.num_links()), 0.0),
          .aim_s_per_byte = packing.s_per_byte,
          .latency_s_per_byte_ps = SecondsPerPs(task)};
}

double BusiestPs(const Task& task, const LinkLoads& loads) {
  return *std::ranges::max_element(loads.s_per_byte) * 1e12 *
         static_cast<double>(std::max<int64_t>(1, task.sizes.size_bytes()));
}

// Packs and unfolds trees that copy from the roots or, if `machine` is the reverse, sum up to the roots.
StatusOr<PackedTrees> UnfoldOneWay(const Task& task, const Topology& machine, const FoldedHosts& folded,
                                   const PackingAim& aim, Candidate& candidate) {
  const PackingProblem problem = HostsProblem(task, folded, aim);
  const FractionalPacking packing = PackTrees(problem);
  if (packing.trees.empty()) return LimitReached("forest: the linear program of trees was not solved");
  const std::vector<Piece> pieces =
      HasManyRoots(task.collective)
          ? Deal(task, folded, problem, packing)
          : Cut(task, folded, problem, packing, [&](Rank) { return *task.collective.spec().root; });
  if (static_cast<int64_t>(pieces.size()) * task.collective.num_members() > kMostTransfers)
    return LimitReached("forest: too many transfers");
  LinkLoads loads = LoadsFor(task, packing);
  Unfolder unfolder(machine, folded, loads);
  const std::vector<int64_t> weights = WeightsOf(pieces);
  PackedTrees trees;
  for (size_t p = 0; p < pieces.size(); ++p) {
    const Piece& piece = pieces[p];
    if (weights[p] == 0) continue;
    const auto arcs = unfolder.Unfold(
        piece.root, ArcsOf(packing, packing.trees[piece.tree].arcs, folded.topology), piece.share);
    if (!arcs) return NotUnfolded();
    PackedTree& tree = trees.trees.emplace_back();
    tree.part = piece.part;
    tree.root = piece.root;
    tree.weight = weights[p];
    for (const UnfoldedArc& arc : *arcs)
      tree.arcs.push_back({arc.from, arc.to, trees.paths.Intern(arc.links), arc.depth});
  }
  std::ranges::stable_sort(trees.trees, {}, &PackedTree::part);
  candidate.rate_ps = BusiestPs(task, loads);
  candidate.note = fmt::format("trees of {:.3f} GB/s between hosts", 1e-9 / packing.s_per_byte);
  candidate.arcs = trees.NumArcs();
  candidate.depth = trees.Depth();
  return trees;
}

std::vector<TreeEdge> EdgesOf(const std::vector<UnfoldedArc>& arcs, bool upward, PathTable& paths,
                              Candidate& candidate) {
  std::vector<TreeEdge> edges;
  for (const UnfoldedArc& arc : arcs) {
    std::vector<LinkId> links = arc.links;
    if (upward) std::reverse(links.begin(), links.end());
    edges.push_back({.parent = arc.from, .child = arc.to, .path = paths.Intern(links)});
    candidate.depth = std::max(candidate.depth, arc.depth);
  }
  candidate.arcs += static_cast<int64_t>(edges.size());
  return edges;
}

StatusOr<Candidate> UnfoldPairs(const Task& task, const FoldedHosts& folded, const PackingAim& aim) {
  const Topology reversed_hosts = ReverseTopology(folded.topology);
  PackingProblem problem = HostsProblem(task, folded, aim);
  problem.reversed = &reversed_hosts;
  const FractionalPacking packing = PackTrees(problem);
  if (packing.trees.empty()) return LimitReached("forest: the linear program of pairs was not solved");
  std::vector<std::vector<Rank>> ranks_of(problem.members.size());
  for (int32_t r = 0; r < task.topology.num_ranks(); ++r)
    ranks_of[folded.host_of_rank[static_cast<size_t>(r)].index()].emplace_back(r);
  std::vector<size_t> turn(ranks_of.size(), 0);
  const std::vector<Piece> pieces = Cut(task, folded, problem, packing, [&](Rank host) {
    const std::vector<Rank>& ranks = ranks_of[host.index()];
    return ranks[turn[host.index()]++ % ranks.size()];
  });
  LinkLoads loads = LoadsFor(task, packing);
  Unfolder down(task.machine.forwards, folded, loads), up(*task.machine.backwards, folded, loads);
  const std::vector<int64_t> weights = WeightsOf(pieces);
  Candidate candidate;
  for (size_t p = 0; p < pieces.size(); ++p) {
    if (weights[p] == 0) continue;
    const FractionalTree& tree = packing.trees[pieces[p].tree];
    const auto sums = up.Unfold(pieces[p].root, ArcsOf(packing, tree.up, reversed_hosts), pieces[p].share);
    const auto copies =
        down.Unfold(pieces[p].root, ArcsOf(packing, tree.arcs, folded.topology), pieces[p].share);
    if (!sums || !copies) return NotUnfolded();
    AllreduceTree& made = candidate.pairs.trees.emplace_back();
    made.weight = weights[p];
    made.root = pieces[p].root;
    made.up = EdgesOf(*sums, true, candidate.pairs.paths, candidate);
    made.down = EdgesOf(*copies, false, candidate.pairs.paths, candidate);
  }
  candidate.rate_ps = BusiestPs(task, loads);
  candidate.note = fmt::format("pairs of trees of {:.3f} GB/s between hosts", 1e-9 / packing.s_per_byte);
  return candidate;
}

}  // namespace

std::optional<int64_t> FoldedRows(const SynthesisRequest& request) {
  if (request.IsPassedOver("folded") || request.limits.chunks ||
      request.collective->num_members() != request.topology->num_ranks() ||
      request.collective->kind() == CollectiveKind::kBarrier || request.topology->num_hosts() > kMostRows)
    return std::nullopt;
  const std::optional<FoldedHosts> folded = FoldHosts(*request.topology);
  if (!folded) return std::nullopt;
  const int64_t rows = int64_t{folded->topology.num_links()} + folded->topology.num_ranks();
  return rows <= kMostRows ? std::optional(rows) : std::nullopt;
}

StatusOr<Candidate> PackFolded(const Task& task, const PackingAim& aim) {
  const std::optional<FoldedHosts> folded = FoldHosts(task.topology);
  XCCL_CHECK(folded.has_value());  // FoldedRows
  if (task.collective.kind() == CollectiveKind::kAllreduce) return UnfoldPairs(task, *folded, aim);
  Candidate candidate;
  if (!task.collective.Reduces()) {
    XCCL_ASSIGN_OR_RETURN(candidate.down, UnfoldOneWay(task, task.machine.forwards, *folded, aim, candidate));
    return candidate;
  }
  const std::optional<FoldedHosts> reversed = FoldHosts(*task.machine.backwards);
  XCCL_CHECK(reversed.has_value());
  XCCL_ASSIGN_OR_RETURN(candidate.up, UnfoldOneWay(task, *task.machine.backwards, *reversed, aim, candidate));
  return candidate;
}

}  // namespace xccl::forest
