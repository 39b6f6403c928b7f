#include "pipeline/search.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/memory.h"
#include "synth/common/cost_model.h"

namespace xccl {
namespace {

// The exact bound is computed if at least this many seconds remain for each pair of ranks. The bound takes
// about 2 us for each pair, and may take a tenth of the remaining time.
constexpr double kSecondsLeftPerPair = 2e-5;

BoundEffort EffortIn(const Deadline& deadline, int32_t ranks) {
  return deadline.SecondsLeft() > kSecondsLeftPerPair * ranks * ranks ? BoundEffort::kExact
                                                                      : BoundEffort::kFast;
}

}  // namespace

Deadline SearchDeadline(const PlanOptions& options) {
  return options.lower ? options.deadline.Leaving(0.5, 60) : options.deadline.Leaving(0.2, 10);
}

SynthesisRequest RequestOf(const Topology& topology, const Collective& collective, const PlanOptions& options,
                           const Bound* bound) {
  SynthesisRequest request = options.request;
  request.topology = &topology;
  request.collective = &collective;
  request.bound = bound;
  request.limits.deadline = SearchDeadline(options);
  request.programs_decide = options.lower && options.machine.has_value();
  return request;
}

std::vector<Synthesis> PlansOf(Synthesis made) {
  std::vector<Synthesis> plans = std::exchange(made.others, {});
  plans.insert(plans.begin(), std::move(made));
  return plans;
}

StatusOr<Simulation> SimulationOf(const Synthesis& made, const SynthesisRequest& request,
                                  const Deadline& deadline) {
  if (made.simulation && !made.simulation->stopped) return *made.simulation;
  const int64_t moves = made.schedule.num_moves();
  XCCL_RETURN_IF_ERROR(CheckMemory(made.engine, fmt::format("a simulation of {} moves of a chunk", moves),
                                   kBytesPerMove * static_cast<double>(moves)));
  SimulateOptions timing = TimingOf(request);
  timing.deadline = deadline;
  Simulation simulation = Simulate(made.schedule, made.collective, *request.topology, timing);
  if (simulation.stopped)
    return LimitReached(made.engine + ": " + deadline.Passed() + " before its plan was simulated");
  return simulation;
}

Search::Search(const Topology& topology, const Collective& collective, const PlanOptions& options)
    : began_(std::chrono::steady_clock::now()),
      options_(options),
      request_(RequestOf(topology, collective, options, &bound_)) {}

Status Search::Begin() {
  if (options_.request.bound != nullptr) {
    bound_ = *options_.request.bound;
    return CheckReachable(*request_.topology, *request_.collective);
  }
  XCCL_ASSIGN_OR_RETURN(
      bound_, LowerBound(*request_.topology, *request_.collective, request_.size_bytes, request_.model,
                         EffortIn(options_.deadline, request_.topology->num_ranks())));
  return OkStatus();
}

double Search::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

StatusOr<std::vector<Synthesis>> Search::Simulated(Synthesis made) {
  for (std::string& fault : std::exchange(made.faults, {}))
    if (std::ranges::find(faults_, fault) == faults_.end()) faults_.push_back(std::move(fault));
  XCCL_ASSIGN_OR_RETURN(made.simulation, SimulationOf(made, request_, options_.deadline));
  // Lowering needs the times of the other plans. Plans that cannot be simulated are dropped.
  if (options_.lower)
    std::erase_if(made.others, [&](Synthesis& other) {
      StatusOr<Simulation> simulation = SimulationOf(other, request_, options_.deadline);
      if (!simulation.ok()) return true;
      other.simulation = *std::move(simulation);
      return false;
    });
  return PlansOf(std::move(made));
}

bool Search::PassOver(const std::string& engine, const Status& status) {
  if (status.code() != StatusCode::kBug || engine == options_.engine || request_.IsPassedOver(engine))
    return false;
  faults_.emplace_back(status.message());
  request_.passed_over.push_back(engine);
  return true;
}

StatusOr<PlanResult> Search::WithFaults(StatusOr<PlanResult> result) const {
  if (result.ok()) result->faults.insert(result->faults.begin(), faults_.begin(), faults_.end());
  return result;
}

}  // namespace xccl
