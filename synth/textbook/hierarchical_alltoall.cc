// Two plans, of which the one that simulates faster is taken. Balanced: synth/textbook/two_tier.h. Combined:
// a GPU hands the j-th GPU of its host all that it has for the j-th GPUs of all hosts, and that one sends
// each of them what its host has for it, in one message: 2 steps, g - 1 and H - 1 messages in place of H g -
// 1, for small sizes where every message costs; each byte crosses once.
#include "synth/textbook/hierarchical_alltoall.h"

#include "ir/simulate/simulate.h"
#include "synth/common/step_limit.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/rounds.h"
#include "synth/textbook/two_tier.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "hierarchical-alltoall";

// Positions host by host: everyone with everyone of the host, then of the rail.
StatusOr<Recipe> PlaceCombined(const RankGraph& graph, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::vector<Rank>> hosts,
                        EqualDomains(graph, request.collective->ranks(), kName, "flow"));
  const int32_t m = static_cast<int32_t>(hosts.size()), g = static_cast<int32_t>(hosts[0].size());
  Rounds rounds{DomainPositions(graph, request.collective->ranks()), {{}, {}}};
  for (int32_t p = 0; p < m * g; ++p) {
    const int32_t host = p / g, place = p % g;
    for (int32_t turn = 1; turn < g; ++turn)
      rounds.rounds[0].push_back({p, host * g + (place + turn) % g, false});
    for (int32_t turn = 1; turn < m; ++turn)
      rounds.rounds[1].push_back({p, (host + turn) % m * g + place, false});
  }
  Recipe recipe;
  recipe.root = hosts[0][0];
  SetRoundsAlltoallCost(rounds, graph, recipe);
  recipe.alltoall = [rounds = std::move(rounds)](const Pairs& pairs, Moves& moves) {
    RoundsAlltoall(rounds, pairs, moves);
  };
  return recipe;
}

const TextbookEngine& Combined() {
  static const TextbookEngine engine = {
      kName,
      "hosts' demands balanced over rails in Birkhoff's stages, or messages combined by host; plans in "
      "microseconds; not exact",
      {CollectiveKind::kAlltoall, CollectiveKind::kAlltoallv},
      PlaceCombined};
  return engine;
}

void Simulated(const SynthesisRequest& request, Synthesis& synthesis) {
  synthesis.simulation = Simulate(synthesis.schedule, synthesis.collective, *request.topology,
                                  {.size_bytes = request.size_bytes, .model = request.model});
}

StatusOr<Synthesis> MakePlan(const SynthesisRequest& request) {
  RankGraphs graphs(*request.topology);
  XCCL_ASSIGN_OR_RETURN(const PlacedEngine placed, PlacedEngine::Place(Combined(), graphs, request));
  // A number of chunks leaves no room for balancing.
  if (request.limits.chunks) return placed.Make();
  XCCL_ASSIGN_OR_RETURN(const TwoTier hosts, TwoTier::Place(graphs.forward(), request.collective->ranks()));
  Synthesis balanced = hosts.Plan(*request.collective);
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

// Simulating it takes most of the time.
StatusOr<Offer> OfferOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
  return Offer{.time_ps = static_cast<double>(bound.bound_ps),
               .work = 2 * int64_t{request.collective->num_parts()}};
}

}  // namespace

Engine HierarchicalAlltoallEngine() {
  return {.name = kName,
          .summary = Combined().summary,
          .kinds = Combined().kinds,
          .near_bound = 6,
          .offer = OfferOf,
          .make = MakePlan};
}

}  // namespace xccl
