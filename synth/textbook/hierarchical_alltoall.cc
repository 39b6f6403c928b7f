// Two plans are compared, and the faster plan is taken. g is the number of GPUs of a host, H the number of
// hosts. Balanced: see synth/textbook/two_tier.h. Combined: a GPU hands the j-th GPU of its host all its
// blocks for the j-th GPUs of all hosts. This GPU then sends each other host's j-th GPU the blocks of its own
// host in one message. So 2 steps of g - 1 and H - 1 messages replace H g - 1 messages, which helps at small
// sizes. Each byte crosses between hosts once. The balanced plan is made first. The combined plan is made too
// if its estimate is lower, in the blocking model, or if the balanced plan has too many steps.
#include "synth/textbook/hierarchical_alltoall.h"

#include "ir/simulate/simulate.h"
#include "synth/common/step_limit.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/rounds.h"
#include "synth/textbook/two_tier.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "hierarchical-alltoall";

// Places the combined plan: all ranks of a host exchange blocks, then all ranks of a rail.
StatusOr<Recipe> PlaceCombined(const RankGraph& graph, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Hosts hosts, EqualHosts(graph, request.collective->ranks(), kName, "flow"));
  const int32_t n = hosts.positions.size();
  const Rounds rounds{hosts.positions, {LineRound(n, hosts.gpus, 1), LineRound(n, hosts.hosts, hosts.gpus)}};
  return RoundsRecipe({rounds}, graph, request);
}

const TextbookEngine& Combined() {
  static const TextbookEngine engine = {
      kName,
      EngineFamily::kExchanges,
      "hosts' demands balanced over rails in Birkhoff's stages, or messages combined by host; plans in "
      "microseconds; not exact",
      {CollectiveKind::kAlltoall, CollectiveKind::kAlltoallv},
      PlaceCombined};
  return engine;
}

void Simulated(const SynthesisRequest& request, Synthesis& synthesis) {
  synthesis.simulation =
      Simulate(synthesis.schedule, synthesis.collective, *request.topology, TimingOf(request));
}

StatusOr<Synthesis> MakePlan(const SynthesisRequest& request) {
  RankGraphs graphs(*request.topology);
  XCCL_ASSIGN_OR_RETURN(const PlacedEngine placed, PlacedEngine::Place(Combined(), graphs, request));
  // A request that fixes the number of chunks gets the combined plan, because the balanced plan cuts parts.
  if (request.limits.chunks) return placed.Make();
  XCCL_ASSIGN_OR_RETURN(Synthesis balanced, PlanTwoTier(graphs.forward(), *request.collective));
  Simulated(request, balanced);
  const bool short_enough = CheckSteps(kName, request, balanced.schedule.num_steps()).ok();
  if (short_enough && static_cast<double>(balanced.simulation->time_ps) <= placed.EstimatePs() &&
      request.model == TimeModel::kPipelined)
    return balanced;
  StatusOr<Synthesis> combined = placed.Make();
  if (!combined.ok()) return short_enough ? StatusOr<Synthesis>(std::move(balanced)) : combined.status();
  Simulated(request, *combined);
  combined->note = "combined by host";
  return short_enough && balanced.simulation->time_ps <= combined->simulation->time_ps ? std::move(balanced)
                                                                                       : *std::move(combined);
}

// Returns the bound as the time. The work is mostly that of simulating the plan.
StatusOr<Offer> OfferOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
  return Offer{.time_ps = static_cast<double>(bound.bound_ps),
               .work = 2 * int64_t{request.collective->num_parts()}};
}

}  // namespace

Engine HierarchicalAlltoallEngine() {
  return {.name = kName,
          .summary = Combined().summary,
          .family = Combined().family,
          .kinds = Combined().kinds,
          .offer = OfferOf,
          .make = MakePlan};
}

}  // namespace xccl
