#include "pipeline/tune.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.h"
#include "base/units.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate_program.h"
#include "pipeline/pipeline.h"

namespace xccl {
namespace {

// A plan is run if its predicted time is at most this times the best prediction. A prediction errs by a
// factor of up to 1.5 (bench/truth_gpu.py in docs/benchmarks.md), and the ratio of two by up to 2.3.
constexpr double kMaxPredictedRatio = 4;

struct Proposal {
  Plan plan;
  int32_t threadblocks = 0;
};

bool SameWork(const Plan& a, const Plan& b) {
  return a.topology == b.topology && a.schedule == b.schedule && a.program == b.program;
}

Status Propose(const Topology& topology, const Collective& collective, const TuneRequest& request,
               std::vector<Proposal>& proposals) {
  for (const int64_t size : request.sizes_bytes) {
    PlanOptions options = request.pipeline;
    options.request.size_bytes = size;
    options.lower = true;
    XCCL_ASSIGN_OR_RETURN(PlanResult made, MakePlan(topology, collective, options));
    if (!made.plan.program)
      return LimitReached(collective.name() + " on " + topology.name() +
                          ": the schedule is too long to be lowered");
    if (std::ranges::any_of(proposals, [&](const Proposal& p) { return SameWork(p.plan, made.plan); }))
      continue;
    proposals.push_back({std::move(made.plan), made.program_stats->threadblocks});
  }
  return OkStatus();
}

// Returns the simulated time on the plan's topology; infinity if the program cannot be simulated.
double PredictedUs(const Plan& plan, int64_t size_bytes, const PlanOptions& options) {
  const StatusOr<Simulation> simulation =
      SimulateProgram(plan.program->program, plan.program->collective, plan.topology,
                      {.size_bytes = size_bytes,
                       .model = options.request.model,
                       .machine = options.machine ? &*options.machine : nullptr});
  return simulation.ok() ? PsToUs(simulation->time_ps) : std::numeric_limits<double>::infinity();
}

// The plan that is chosen for a size, and its times.
struct Choice {
  size_t proposal = 0;
  double measured_us = std::numeric_limits<double>::infinity();
  double predicted_us = 0;
};

StatusOr<Choice> Choose(const std::vector<Proposal>& proposals, int64_t size_bytes,
                        const PlanOptions& options, const Measure& measure) {
  std::vector<double> predicted;
  for (const Proposal& p : proposals) predicted.push_back(PredictedUs(p.plan, size_bytes, options));
  const double best = *std::ranges::min_element(predicted);
  Choice choice;
  for (size_t i = 0; i < proposals.size(); ++i) {
    if (predicted[i] > kMaxPredictedRatio * best) continue;
    double us = predicted[i];
    if (measure) {
      XCCL_ASSIGN_OR_RETURN(us, measure(*proposals[i].plan.program, size_bytes));
    }
    if (us < choice.measured_us) choice = {i, us, predicted[i]};
  }
  return choice;
}

PlanBookEntry EntryOf(const Plan& plan, int64_t size_bytes) {
  std::string size = FormatSize(size_bytes);
  PlanBookEntry entry;
  entry.collective = plan.collective.kind();
  entry.ranks = plan.topology.num_ranks();
  entry.root = plan.collective.spec().root;
  const std::string root = entry.root ? "-root" + std::to_string(entry.root->value) : "";
  entry.file = plan.collective.name() + root + "-" + size + ".plan.json";
  entry.in_place = plan.program->program.in_place ? InPlaceMode::kBoth : InPlaceMode::kNever;
  return entry;
}

}  // namespace

int64_t LastNearerTo(int64_t size_bytes, int64_t next_bytes) {
  return static_cast<int64_t>(std::sqrt(static_cast<double>(size_bytes) * static_cast<double>(next_bytes)));
}

Status WriteBook(const std::vector<PlanBookEntry>& entries, std::span<const Plan> plans,
                 const MachineModel& machine, const std::string& directory) {
  for (size_t i = 0; i < plans.size(); ++i)
    XCCL_RETURN_IF_ERROR(WritePlan(plans[i], directory + "/" + entries[i].file));
  XCCL_RETURN_IF_ERROR(WriteMachineModel(machine, directory + "/machine.json"));
  return WritePlanBook({directory, entries});
}

StatusOr<Tuned> Tune(std::span<const Topology> topologies, const TuneRequest& request,
                     const Measure& measure) {
  Tuned tuned;
  size_t done = 0;
  for (const Collective& collective : request.collectives) {
    std::vector<Proposal> proposals;
    for (const Topology& topology : topologies)
      XCCL_RETURN_IF_ERROR(Propose(topology, collective, request, proposals));
    std::optional<size_t> last;
    for (size_t s = 0; s < request.sizes_bytes.size(); ++s) {
      const int64_t size = request.sizes_bytes[s];
      XCCL_ASSIGN_OR_RETURN(const Choice choice, Choose(proposals, size, request.pipeline, measure));
      const Proposal& chosen = proposals[choice.proposal];
      if (last != choice.proposal) {
        PlanBookEntry entry = EntryOf(chosen.plan, size);
        if (last) {
          tuned.entries.back().max_bytes = LastNearerTo(request.sizes_bytes[s - 1], size);
          entry.min_bytes = *tuned.entries.back().max_bytes + 1;
        }
        tuned.entries.push_back(std::move(entry));
        tuned.plans.push_back(chosen.plan);
        last = choice.proposal;
      }
      tuned.rows.push_back({.collective = collective.name(),
                            .engine = chosen.plan.made_by.engine,
                            .file = tuned.entries.back().file,
                            .topology = chosen.plan.topology.name(),
                            .root = collective.spec().root,
                            .size_bytes = size,
                            .measured_us = choice.measured_us,
                            .predicted_us = choice.predicted_us,
                            .threadblocks = chosen.threadblocks});
    }
    if (request.on_collective) request.on_collective(++done, request.collectives.size());
  }
  return tuned;
}

}  // namespace xccl
