#include "synth/portfolio/auto.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/bounds/bound.h"
#include "synth/common/cost_model.h"
#include "synth/common/members_alone.h"
#include "synth/common/serves.h"
#include "synth/portfolio/portfolio.h"
#include "topologies/submachine.h"

namespace xccl {
namespace {

// Returns true if a rank that is no member has a link in and a link out.
bool CanRelay(const Topology& topology, std::span<const Rank> members) {
  std::vector<bool> idle(static_cast<size_t>(topology.num_ranks()), true);
  for (Rank r : members) idle[r.index()] = false;
  for (int32_t r = 0; r < topology.num_ranks(); ++r)
    if (const NodeId n = topology.NodeOf(Rank(r));
        idle[static_cast<size_t>(r)] && !topology.In(n).empty() && !topology.Out(n).empty())
      return true;
  return false;
}

// Plans a collective of some ranks of a machine on the submachine of these ranks alone.
StatusOr<Synthesis> PlanAlone(const SynthesisRequest& request, std::span<const Engine> engines) {
  const Submachine alone = MembersAlone(*request.topology, request.collective->ranks());
  const Collective collective = RestrictTo(*request.collective, alone);
  XCCL_RETURN_IF_ERROR(CheckReachable(alone.topology, collective));
  SynthesisRequest smaller = request;
  smaller.topology = &alone.topology;
  smaller.collective = &collective;
  smaller.start.reset();
  smaller.bound = nullptr;
  smaller.graphs.reset();
  XCCL_ASSIGN_OR_RETURN(Synthesis made, TryEngines(smaller, engines));
  std::vector<Synthesis> others;
  for (Synthesis& other : std::exchange(made.others, {}))
    if (StatusOr<Synthesis> on_all = OnWholeMachine(std::move(other), alone, *request.collective);
        on_all.ok())
      others.push_back(*std::move(on_all));
  XCCL_ASSIGN_OR_RETURN(Synthesis best, OnWholeMachine(std::move(made), alone, *request.collective));
  best.others = std::move(others);
  return best;
}

// Returns `kept` with the faults of `dropped` added to its own.
Synthesis WithFaultsOf(const Synthesis& dropped, Synthesis kept) {
  kept.faults.insert(kept.faults.end(), dropped.faults.begin(), dropped.faults.end());
  return kept;
}

// Plans a collective of some ranks of a machine. First plans on the submachine of the members alone. Plans on
// all ranks as well if that gives no simulated plan, or if another rank can relay and a faster plan is
// possible. Keeps the faster plan. Requires: some rank is no member.
StatusOr<Synthesis> PlanSomeRanks(const SynthesisRequest& request, std::span<const Engine> engines) {
  StatusOr<Synthesis> alone = PlanAlone(request, engines);
  if (!alone.ok()) return TryEngines(request, engines);
  SynthesisRequest whole = request;
  std::optional<Bound> bound;
  if (alone->simulation) {
    if (alone->schedule.size() == 0 || !CanRelay(*request.topology, request.collective->ranks()))
      return alone;
    XCCL_ASSIGN_OR_RETURN(bound, BoundOf(request));
    const int64_t time_ps = alone->simulation->time_ps;
    alone->note += alone->note.empty() ? "the other ranks carry nothing" : "; the other ranks carry nothing";
    alone->exact = alone->exact && MeetsBound(time_ps, *bound);
    if (static_cast<double>(time_ps) <= static_cast<double>(bound->bound_ps) * kNear) return alone;
    whole.bound = &*bound;
  }
  StatusOr<Synthesis> relayed = TryEngines(whole, engines);
  if (!relayed.ok()) return alone->simulation ? std::move(alone) : std::move(relayed);
  const bool relays_win = !alone->simulation ||
                          (relayed->simulation && relayed->simulation->time_ps < alone->simulation->time_ps);
  return relays_win ? WithFaultsOf(*alone, *std::move(relayed)) : WithFaultsOf(*relayed, *std::move(alone));
}

}  // namespace

Engine AutoEngine(EngineTable table) {
  return {.name = kDefaultEngine,
          .summary =
              "tries the engines in order of their estimates, simulates, keeps the fastest; exact where "
              "it meets the bound",
          .exact_on = ExactOn::kMetBound,
          .asks_others = true,
          .serves = [](const SynthesisRequest& request) { return CheckMembers(kDefaultEngine, request); },
          .make =
              [table](const SynthesisRequest& request) {
                const bool all = request.collective->num_members() == request.topology->num_ranks();
                return all ? TryEngines(request, table()) : PlanSomeRanks(request, table());
              }};
}

}  // namespace xccl
