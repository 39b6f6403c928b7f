// 1. FindWhole finds the whole machine: as it was before links failed, links got slow or hosts were lost.
// 2. The default engine makes plans for that machine, the fastest first.
// 3. Replan repairs these plans for the machine that is left. Plans that are no trees cannot be repaired.
#include "synth/replan/mended.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/damaged.h"
#include "ir/plan.h"
#include "ir/translated.h"
#include "synth/common/cost_model.h"
#include "synth/common/step_limit.h"
#include "synth/replan/replan.h"
#include "topologies/whole.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "mended";

// The whole machine, and the collective of all its ranks.
struct Whole {
  Topology topology;
  Collective collective;
};

// Returns the number of moves of a plain plan: a chunk of every rank goes to all ranks, or comes from them,
// or both.
int64_t MovesOf(const Collective& collective) {
  const int64_t n = collective.num_members();
  return (IsAllreduce(collective.kind()) ? 2 : 1) * n * n;
}

StatusOr<Whole> FindWhole(const SynthesisRequest& request) {
  const Collective& collective = *request.collective;
  if (request.limits.chunks)
    return InvalidInput(fmt::format("{}: {} chunks; expected no number, since repairs cut chunks", kName,
                                    *request.limits.chunks));
  if (MovesOf(collective) > kMostTransfers)
    return InvalidInput(
        fmt::format("{}: a plan of {} transfers; expected at most {}, which are repaired one by one", kName,
                    MovesOf(collective), kMostTransfers));
  const std::optional<MissingLinks> missing = FindMissingLinks(*request.topology);
  if (!missing)
    return InvalidInput(fmt::format("{}: found no failed link, slow link or lost host; expected one", kName));
  XCCL_ASSIGN_OR_RETURN(Topology whole, MakeWhole(*request.topology, *missing));
  if (missing->hosts.empty()) return Whole{std::move(whole), collective};
  const int32_t chunks = IsAllreduce(collective.kind()) ? collective.num_members() : 1;
  const StatusOr<Collective> of_all = WholeOf(*missing, collective.WithChunks(chunks), whole);
  if (!of_all.ok()) return Annotate(of_all.status(), std::string(kName));
  return Whole{std::move(whole), of_all->WithChunks(1)};
}

StatusOr<Synthesis> PlanOn(const Whole& whole, const SynthesisRequest& request, EngineTable table,
                           int64_t most_work) {
  SynthesisRequest before = request;
  before.topology = &whole.topology;
  before.collective = &whole.collective;
  before.size_bytes = WholeSizeBytes(*request.collective, whole.collective, request.size_bytes);
  before.limits.work_units = most_work / 2;
  before.programs_decide = false;
  before.start.reset();
  before.bound = nullptr;
  before.graphs.reset();
  before.passed_over.emplace_back(kName);
  const Engine& quick = *std::ranges::find(table(), kDefaultEngine, &Engine::name);
  XCCL_ASSIGN_OR_RETURN(Synthesis fastest, quick.Plan(before));
  std::vector<std::string> faults = std::exchange(fastest.faults, {});
  std::vector<Synthesis> plans = std::exchange(fastest.others, {});
  plans.insert(plans.begin(), std::move(fastest));
  SynthesisRequest repairs = request;
  repairs.limits.work_units = 0;
  StepBudget budget(kName, request);
  std::optional<Synthesis> best;
  Status refused;
  int64_t left = most_work / 2;
  for (Synthesis& plan : plans) {
    const int64_t moves = ExpandedTransfers(plan.schedule, plan.collective, whole.topology);
    if (best && moves > left) break;
    left -= moves;
    Plan from{whole.topology, std::move(plan.collective), std::move(plan.schedule), std::nullopt, {}};
    from.made_by.engine = plan.engine;
    StatusOr<Synthesis> made = Replan(from, repairs);
    refused = made.status();
    if (!made.ok() || !budget.Allows(made->schedule.num_steps())) continue;
    made->engine = kName;
    if (best)
      best->others.push_back(*std::move(made));
    else
      best = *std::move(made);
  }
  if (best) {
    best->faults = std::move(faults);
    return *std::move(best);
  }
  return refused.ok() ? budget.Refusal() : Annotate(refused, std::string(kName));
}

}  // namespace

Engine MendedEngine(EngineTable table) {
  return {.name = kName,
          .summary = "the machine's plan before links failed or hosts were lost, repaired; not exact",
          // Leaves out rooted collectives, whose plans need no symmetric machine, and alltoalls, which have
          // too many trees to repair.
          .kinds = {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
                    CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv},
          .offer = [table](const SynthesisRequest& request) -> StatusOr<Offer> {
            XCCL_ASSIGN_OR_RETURN(Whole whole, FindWhole(request));
            XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
            // The time is known only after the repair. The promise is just above the bound, so that auto
            // takes it for an estimate and, if there are many members, makes this plan first.
            Offer offer{.time_ps = kNear * static_cast<double>(bound.bound_ps),
                        .work = MovesOf(*request.collective),
                        .fills_budget = true};
            offer.make = [table, &request, kept = std::make_shared<const Whole>(std::move(whole))](
                             int64_t most_work) { return PlanOn(*kept, request, table, most_work); };
            return offer;
          },
          .make = [table](const SynthesisRequest& request) -> StatusOr<Synthesis> {
            XCCL_ASSIGN_OR_RETURN(const Whole whole, FindWhole(request));
            return PlanOn(whole, request, table, request.limits.work_units);
          }};
}

}  // namespace xccl
