// MakePlan chooses the kind of trees. Whole trees (synth/forest/broadcast.h, synth/forest/allreduce.h) need a
// machine of GPUs alone. Packed trees (synth/forest/pack_and_cut.h) come from a linear program.
// 1. A broadcast or reduce on a machine of GPUs alone uses whole trees. If they are far from the bound,
//    packed trees are tried as well.
// 2. A barrier, or an allreduce in a given number of chunks, uses whole trees.
// 3. Any other allreduce uses whole trees. If there are none, or they are not near the bound, packed trees
//    are tried as well. If whole trees would take long, packed trees with symmetry are tried first.
// 4. All other requests use packed trees.
// If both kinds are tried, the faster plan is kept.
#include "synth/forest/forest.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/translated.h"
#include "synth/common/cost_model.h"
#include "synth/common/serves.h"
#include "synth/common/simulated_transfers.h"
#include "synth/common/step_limit.h"
#include "synth/forest/allreduce.h"
#include "synth/forest/broadcast.h"
#include "synth/forest/folded_packing.h"
#include "synth/forest/pack_and_cut.h"
#include "synth/forest/request.h"
#include "topologies/symmetry.h"

namespace xccl::forest {
namespace {

// If the linear program of packed trees has more than `rows` rows, a plan within `ratio` × the bound is near
// enough. The ratios are above 1 because the bound is not always attained.
struct NearEnough {
  int64_t rows;
  double ratio;
};
constexpr std::string_view kName = "forest";
constexpr int64_t kLongProgram = 200;  // rows above which the linear program takes long
// Bytes that an arc of a tree takes in the linear program, with a path of a few links (PackedArc).
constexpr int64_t kBytesPerArc = 48;
constexpr int64_t kMovesPerRow = 1500;  // work of one row of the linear program, in moves (cost_model.h)
// Work for each pair of members, in moves. It counts if latency is more than half of the bound, because every
// message is then simulated.
constexpr int64_t kMovesPerShortMessage = 3;
// Estimate of time ÷ bound in the blocking model for given chunks: each step waits for the step before.
constexpr double kBlockingTrees = 2;
// For a broadcast or reduce, packed trees are tried if whole trees take more than this multiple of the bound.
constexpr double kFarRooted = 1.1;
constexpr NearEnough kNearEnough[] = {{2 * kLongProgram, 1.3}, {kLongProgram, 1.1}, {0, 1.01}};

// Work of growing a broadcast's trees for each tree and link, in moves; measured 2 to 3 on tori of 8,192 and
// 32,768 ranks.
constexpr int64_t kMovesPerTreeLink = 3;

std::optional<SymmetryGroup> SymmetryOf(const SynthesisRequest& request) {
  if (!MayUseSymmetry(*request.topology, *request.collective)) return std::nullopt;
  return FindTranslations(*request.topology);
}

// Returns the rows of the linear program of packed trees. Each link and each member has a row; alike links
// share one row, and so do alike members. The time of the program depends on its rows.
int64_t RowsOf(const SynthesisRequest& request) {
  const std::optional<SymmetryGroup> group = SymmetryOf(request);
  return group ? NumRows(*group) : NumRows(request);
}

// Estimates the operations (cost_model.h) with which the packing of whole trees begins. A search from each
// rank looks at all links, to find the middle of the machine, where trees get their roots. On machines beyond
// kCentralArcs (spanning_trees.cc) fewer ranks are searched.
int64_t WholeTreesOperations(const SynthesisRequest& request) {
  return int64_t{request.topology->num_ranks()} * request.topology->num_links();
}

// Returns the lower bound for an allgather of the request's size, in picoseconds; 0 if the bound is unknown.
double AllgatherPs(const SynthesisRequest& request) {
  const std::span<const Rank> ranks = request.collective->ranks();
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllgather;
  spec.ranks.assign(ranks.begin(), ranks.end());
  const StatusOr<Collective> collective = Collective::Create(std::move(spec));
  if (!collective.ok()) return 0;
  const StatusOr<Bound> bound =
      LowerBound(*request.topology, *collective, request.size_bytes, request.model, BoundEffort::kFast);
  return bound.ok() ? static_cast<double>(bound->bound_ps) : 0;
}

// Simulates the plan and sets `exact` if its time meets the bound.
StatusOr<Synthesis> Simulated(const SynthesisRequest& request, const Bound& bound, StatusOr<Synthesis> made) {
  if (!made.ok()) return made;
  made->simulation = Simulate(made->schedule, made->collective, *request.topology, TimingOf(request));
  made->exact = made->schedule.size() == 0 || MeetsBound(made->simulation->time_ps, bound);
  return made;
}

// Returns whether a plan of whole or of packed trees is so near the bound that the other kind is not tried.
// On large machines without symmetry packed trees take a long linear program. The exact bound is computed
// only if the plan is not near the known bound.
bool IsNear(const SynthesisRequest& request, const Bound& known, const Synthesis& made) {
  const int64_t rows = RowsOf(request);
  const double near =
      std::ranges::find_if(kNearEnough, [rows](const NearEnough& w) { return rows > w.rows; })->ratio;
  const auto is_within = [&](const Bound& bound) {
    return static_cast<double>(made.simulation->time_ps) <= near * static_cast<double>(bound.bound_ps);
  };
  if (is_within(known)) return true;
  const StatusOr<Bound> exact = LowerBound(*request.topology, *request.collective, request.size_bytes,
                                           request.model, BoundEffort::kExact);
  if (!exact.ok()) return false;
  // If latency is more than half of the bound, a better rate does not help.
  return is_within(*exact) || (rows > kLongProgram && 2 * exact->latency_ps > exact->bound_ps);
}

// Returns whether packed trees cannot win: none has a higher rate (HasEvenCables), and a reduce_scatter and
// then an allgather, each at its bound, take as long or longer.
bool IsBetterThanApart(const SynthesisRequest& request, const Synthesis& made) {
  return HasEvenCables(request) && static_cast<double>(made.simulation->time_ps) <= 2 * AllgatherPs(request);
}

Status Serves(const SynthesisRequest& request) {
  const Collective& collective = *request.collective;
  if (std::ranges::find(kServed, collective.kind()) == std::end(kServed))
    return InvalidInput(
        fmt::format("forest: {} is not served; it serves allgather(v), reduce_scatter(v), "
                    "broadcast, reduce, allreduce and barrier",
                    collective.name()));
  XCCL_RETURN_IF_ERROR(CheckMembers(kName, request));
  if (request.limits.chunks && !collective.spec().counts.empty())
    return InvalidInput(fmt::format("forest: --chunks with {}: uneven parts have uneven trees; expected none",
                                    collective.name()));
  Status gpus_alone = NeedsGpusAlone(request);
  if (collective.kind() == CollectiveKind::kBarrier ||
      (collective.kind() == CollectiveKind::kAllreduce && request.limits.chunks))
    return gpus_alone;
  const bool packs_alone =
      gpus_alone.ok() && (collective.spec().root || collective.kind() == CollectiveKind::kAllreduce);
  if (!request.limits.chunks && NumRows(request) > kMostRows &&
      !MayUseSymmetry(*request.topology, collective) && !packs_alone && !FoldedRows(request))
    return InvalidInput(
        fmt::format("forest: {} links and {} ranks; at most {} together without symmetry; "
                    "hint: --engine=greedy",
                    request.topology->num_links(), collective.num_members(), kMostRows));
  return OkStatus();
}

// The work, in moves (cost_model.h), and the memory of the linear programs of packed trees.
struct PackingCost {
  int64_t work = 0, bytes = 0;
};

// Returns the estimated cost. A linear program takes about a round for each row, up to its max_rounds. In a
// round, every root grows a tree over all links with a priority queue, and all trees are kept. An allreduce
// has one program for sums and one for copies. With uneven cables it may have a program of pairs, which grows
// two trees for each root.
PackingCost PackingCostOf(const SynthesisRequest& request, int64_t rows, int64_t roots) {
  const int64_t programs = request.collective->kind() != CollectiveKind::kAllreduce ? 1
                           : HasEvenCables(request)                                 ? 2
                                                                                    : 4;
  const int64_t trees = programs * roots * std::min<int64_t>(PackingProblem{}.max_rounds, rows);
  const int64_t links = request.topology->num_links();
  const auto queue = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(links)));
  return {trees * links * queue / kOperationsPerMove,
          trees * request.collective->num_members() * kBytesPerArc};
}

// Estimates the time and the work of a plan. A collective of one part is mostly planned with whole trees,
// which need no linear program. Trees for a given number of chunks are packed without symmetry.
StatusOr<Offer> OfferOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
  const Topology& topology = *request.topology;
  Offer offer{.time_ps = static_cast<double>(bound.bound_ps)};
  const bool gpus_alone = NeedsGpusAlone(request).ok();
  if (const std::optional<Rank> root = request.collective->spec().root) {
    if (gpus_alone)
      offer.work =
          kMovesPerTreeLink * topology.num_links() * std::ssize(topology.Out(topology.NodeOf(*root)));
    return offer;
  }
  if (request.limits.chunks && request.model == TimeModel::kBlocking) offer.time_ps *= kBlockingTrees;
  const int64_t members = request.collective->num_members();
  if (2 * bound.latency_ps > bound.bound_ps) offer.work = kMovesPerShortMessage * members * members;
  const std::optional<SymmetryGroup> group = SymmetryOf(request);
  // On smaller machines, simulations of plain schedules take longer than growing trees.
  if (group && NumRows(*group) <= kMostRows && members * members > kMostTransfers) {
    const PackingCost packing = PackingCostOf(request, NumRows(*group), group->num_rank_orbits());
    offer.work = std::max(offer.work, packing.work);
    offer.bytes = packing.bytes;
  }
  int64_t transfers = group ? std::min(kPackingWork, SimulatedTransfers(topology, *group)) : 0;
  if (request.collective->num_parts() == 1) {
    if (gpus_alone) transfers += std::min(kManyTransfers, WholeTreesOperations(request) / kOperationsPerMove);
    offer.work = std::max(offer.work, transfers);
    return offer;
  }
  int64_t rows = group ? NumRows(*group) : NumRows(request);
  if (rows > kMostRows) {
    if (const std::optional<int64_t> folded = FoldedRows(request)) {
      // Unfolded trees take many different paths, so their program has hundreds of threadblocks. Such a
      // program took fifty times the bound where other engines' programs took three times.
      if (request.programs_decide)
        return LimitReached("forest: trees between folded hosts make no fast program; hint: --engine=forest");
      rows = *folded;
      transfers = members * members;  // every transfer is unfolded and simulated
    }
  }
  offer.work = std::max(offer.work, rows * kMovesPerRow + transfers);
  if (request.limits.chunks) offer.work = std::max(offer.work, topology.num_links() * members);
  return offer;
}

// Returns kLimit if the given number of chunks makes more than kMostTransfers transfers. A limit of work
// could not stop such a plan in time.
Status CheckChunks(const SynthesisRequest& request) {
  const int64_t each = int64_t{request.collective->num_parts()} * request.collective->num_members();
  const int64_t chunks = request.limits.chunks.value_or(1);
  if (chunks == 1 || each * chunks <= kMostTransfers) return OkStatus();
  const int64_t most = std::max<int64_t>(1, kMostTransfers / each);
  return LimitReached(fmt::format("forest: {} chunks a part on {} ranks; at most {}; hint: --chunks={}",
                                  chunks, request.collective->num_members(), most, most));
}

// Plans a broadcast or reduce with whole trees. If they are far from the bound, packed trees are tried, too,
// and the faster plan is returned.
StatusOr<Synthesis> RootedPlan(const SynthesisRequest& request, const Bound& bound, StepBudget& budget) {
  StatusOr<Synthesis> whole = Simulated(request, bound, SynthesizeBroadcastTrees(request));
  if (request.IsPassedOver("packedbroadcast")) return whole;
  if (!whole.ok() || request.limits.chunks || NumRows(request) > 2 * kLongProgram) return whole;
  const auto whole_ps = static_cast<double>(whole->simulation->time_ps);
  if (whole_ps <= kFarRooted * static_cast<double>(bound.bound_ps)) return whole;
  SynthesisRequest limited = request;
  if (limited.limits.work_units == 0) limited.limits.work_units = kManyTransfers;
  StatusOr<Synthesis> packed = PackAndCut(limited, bound, budget, whole_ps);
  if (!packed.ok() || static_cast<double>(packed->simulation->time_ps) >= whole_ps) return whole;
  packed->others.push_back(*std::move(whole));
  return packed;
}

StatusOr<Synthesis> MakePlan(const SynthesisRequest& request) {
  XCCL_RETURN_IF_ERROR(CheckChunks(request));
  XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
  const CollectiveKind kind = request.collective->kind();
  StepBudget budget(kName, request);
  if (!request.IsPassedOver("arborescences") && request.collective->spec().root &&
      NeedsGpusAlone(request).ok())
    return RootedPlan(request, bound, budget);
  if (kind != CollectiveKind::kAllreduce && kind != CollectiveKind::kBarrier)
    return PackAndCut(request, bound, budget);
  // Whole trees need not have roots at all ranks. That helps if some ranks have less bandwidth.
  if (request.IsPassedOver("spanning") && !request.limits.chunks && kind == CollectiveKind::kAllreduce)
    return PackAndCut(request, bound, budget);
  std::optional<StatusOr<Synthesis>> packed;
  // If whole trees take long, packed trees with symmetry are tried first. Their work is that of one rank of
  // each orbit.
  if (kind == CollectiveKind::kAllreduce && !request.limits.chunks &&
      MayUseSymmetry(*request.topology, *request.collective) &&
      WholeTreesOperations(request) > kOperationsPerMove * kManyTransfers) {
    packed = PackAndCut(request, bound, budget);
    if (packed->ok() && IsNear(request, bound, **packed)) return *std::move(packed);
  }
  StatusOr<Synthesis> whole = Simulated(request, bound, SynthesizeAllreduceTrees(request, budget));
  if (kind == CollectiveKind::kBarrier || request.limits.chunks ||
      (whole.ok() && (IsNear(request, bound, *whole) || IsBetterThanApart(request, *whole))) ||
      (NumRows(request) > kMostRows && !MayUseSymmetry(*request.topology, *request.collective) &&
       !FoldedRows(request)))
    return whole;
  if (!whole.ok()) return packed ? *std::move(packed) : PackAndCut(request, bound, budget);
  const int64_t whole_ps = whole->simulation->time_ps;
  StatusOr<Synthesis> apart =
      packed ? *std::move(packed) : PackAndCut(request, bound, budget, static_cast<double>(whole_ps));
  return apart.ok() && apart->simulation->time_ps <= whole_ps ? std::move(apart) : std::move(whole);
}

}  // namespace
}  // namespace xccl::forest

namespace xccl {

Engine ForestEngine() {
  return {.name = forest::kName,
          .summary = "trees at the rate of the worst cut, as shallow as that allows; optimal in bandwidth",
          .kinds = {std::begin(forest::kServed), std::end(forest::kServed)},
          .exact_on = ExactOn::kBandwidth,
          .serves = forest::Serves,
          .offer = forest::OfferOf,
          .make = forest::MakePlan};
}

}  // namespace xccl
