// Which trees a request takes: spanning trees where GPUs are joined directly, else those that linear programs
// pack; for an allreduce whichever are faster.
#include "synth/forest/forest.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "synth/common/cost_model.h"
#include "synth/common/serves.h"
#include "synth/common/step_limit.h"
#include "synth/forest/allreduce.h"
#include "synth/forest/broadcast.h"
#include "synth/forest/pack_and_cut.h"
#include "synth/forest/request.h"
#include "topologies/symmetry.h"

namespace xccl::forest {
namespace {

// A plan within `ratio` times the bound is near enough where the program of another kind of packing has more
// than `rows` rows. The bound is not always attained.
struct NearEnough {
  int64_t rows;
  double ratio;
};
constexpr std::string_view kName = "forest";
constexpr int64_t kLongProgram = 200;
constexpr int64_t kMovesPerRow = 1500;  // of the program, in moves of a chunk
// Where latency is most of the time, the plan is simulated message by message.
constexpr int64_t kMovesPerShortMessage = 3;
// A guess, in times the bound, of whole trees in a given number of chunks where a step waits for the one
// before.
constexpr double kBlockingTrees = 2;
// Packed trees are tried beside whole ones that are further from the bound, in times the bound.
constexpr double kFarRooted = 1.1;
constexpr NearEnough kNearEnough[] = {{2 * kLongProgram, 1.3}, {kLongProgram, 1.1}, {0, 1.01}};

// How many kinds of links and roots the linear program tells apart: what its time grows with. Linear in the
// machine.
int64_t RowsOf(const SynthesisRequest& request) {
  if (!MayUseSymmetry(*request.topology, *request.collective)) return NumRows(request);
  return NumRows(FindTranslations(*request.topology));
}

// The least that an allgather of so much takes.
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

// Is another kind of packing not needed? On large machines without symmetry that is a long program. The exact
// bound is sought only where the known one does not tell.
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
  // Where latency is most of the time, rates are not what matters.
  return is_within(*exact) || (rows > kLongProgram && 2 * exact->latency_ps > exact->bound_ps);
}

// Is this faster than any reduce_scatter and then allgather, and are there no better trees?
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
      !MayUseSymmetry(*request.topology, collective) && !packs_alone)
    return InvalidInput(
        fmt::format("forest: {} links and {} ranks; at most {} together without symmetry; "
                    "hint: --engine=greedy",
                    request.topology->num_links(), collective.num_members(), kMostRows));
  return OkStatus();
}

// Spanning trees of one part need no program; equal trees are packed without help of symmetry.
StatusOr<Offer> OfferOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
  Offer offer{.time_ps = static_cast<double>(bound.bound_ps)};
  if (request.collective->spec().root) return offer;
  if (request.limits.chunks && request.model == TimeModel::kBlocking) offer.time_ps *= kBlockingTrees;
  const int64_t members = request.collective->num_members();
  if (2 * bound.latency_ps > bound.bound_ps) offer.work = kMovesPerShortMessage * members * members;
  if (request.collective->num_parts() == 1) return offer;
  offer.work = std::max(offer.work, RowsOf(request) * kMovesPerRow);
  if (request.limits.chunks) offer.work = std::max(offer.work, request.topology->num_links() * members);
  return offer;
}

// Chunks that would be so many transfers that no limit of work could stop them in time.
Status CheckChunks(const SynthesisRequest& request) {
  const int64_t each = int64_t{request.collective->num_parts()} * request.collective->num_members();
  const int64_t chunks = request.limits.chunks.value_or(1);
  if (chunks == 1 || each * chunks <= kMostTransfers) return OkStatus();
  const int64_t most = std::max<int64_t>(1, kMostTransfers / each);
  return LimitReached(fmt::format("forest: {} chunks a part on {} ranks; at most {}; hint: --chunks={}",
                                  chunks, request.collective->num_members(), most, most));
}

// A broadcast or reduce by whole trees or, where these are far from the bound, by packed ones.
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
  // Trees that need not be rooted everywhere are better where some ranks have less bandwidth than others.
  if (request.IsPassedOver("spanning") && !request.limits.chunks && kind == CollectiveKind::kAllreduce)
    return PackAndCut(request, bound, budget);
  StatusOr<Synthesis> together = Simulated(request, bound, SynthesizeAllreduceTrees(request, budget));
  if (kind == CollectiveKind::kBarrier || request.limits.chunks ||
      (together.ok() && (IsNear(request, bound, *together) || IsBetterThanApart(request, *together))) ||
      (NumRows(request) > kMostRows && !MayUseSymmetry(*request.topology, *request.collective)))
    return together;
  if (!together.ok()) return PackAndCut(request, bound, budget);
  const int64_t together_ps = together->simulation->time_ps;
  StatusOr<Synthesis> apart = PackAndCut(request, bound, budget, static_cast<double>(together_ps));
  return apart.ok() && apart->simulation->time_ps <= together_ps ? std::move(apart) : std::move(together);
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
