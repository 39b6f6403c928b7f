#include "pipeline/describe.h"

#include <fmt/core.h>

#include <utility>

#include "base/units.h"
#include "ir/known_machines.h"
#include "ir/machine_model.h"
#include "ir/program.h"
#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"

namespace xccl {
namespace {

StatusOr<int64_t> TimeOf(const Topology& topology, const LoweredProgram& lowered,
                         const PlanOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const Simulation simulation, SimulateProgram(lowered.program, lowered.collective,
                                                                     topology, ProgramTiming(options)));
  return simulation.time_ps;
}

// Returns why the program takes more than kSlower times the schedule's time; empty if it does not.
std::string ReasonOfLoss(const Topology& topology, const PlanOptions& options, const LoweredProgram& lowered,
                         int64_t time_ps, int64_t schedule_ps) {
  const double wanted_ps = kSlower * static_cast<double>(schedule_ps);
  const auto is_wanted = [&](int64_t ps) { return static_cast<double>(ps) <= wanted_ps; };
  if (is_wanted(time_ps)) return "";
  LoweredProgram unlimited = lowered;
  unlimited.program.slots = kMaxSlots;
  const StatusOr<int64_t> unlimited_ps = TimeOf(topology, unlimited, options);
  if (!unlimited_ps.ok()) return "the time limit passed before the reason was found";
  if (options.machine) {
    PlanOptions links = options;
    links.machine.reset();
    const StatusOr<int64_t> links_ps = TimeOf(topology, lowered, links);
    if (links_ps.ok() && is_wanted(*links_ps))
      return "the launch, messages and hand-offs between threadblocks take the rest";
  }
  if (is_wanted(*unlimited_ps)) return fmt::format("senders wait for one of {} slots", lowered.program.slots);
  if (!lowered.program.groups.empty())
    return "a threadblock that serves several ranks waits until all of them are ready";
  return "threadblocks wait for messages in the order of their instructions";
}

// Returns a text that compares two rates: the most that the threadblocks of one rank reach, and what the
// GPU's links to GPUs reach (NVLink, xGMI). By Little's law, a threadblock's rate is its bytes in flight
// (kBlockBytesInFlight) ÷ the time of a round trip. The model gives the rate of one threadblock. Empty if the
// model lacks one of the two rates.
std::string InFlight(const MachineModel& machine, const Program& program, const ProgramStats& stats) {
  const int64_t rate = machine.CostOf(program.protocol).block_bytes_per_s;
  if (rate == 0 || machine.nvlink_bytes_per_s == 0) return "";
  const double all = static_cast<double>(rate) * stats.threadblocks;
  const auto links = static_cast<double>(machine.nvlink_bytes_per_s);
  const double round_trip_ps = static_cast<double>(kBlockBytesInFlight) / static_cast<double>(rate) * 1e12;
  return fmt::format("{} x {} in {}: {} at most; a GPU's links to GPUs reach {}", stats.threadblocks,
                     FormatSize(kBlockBytesInFlight),
                     FormatDurationShort(static_cast<int64_t>(round_trip_ps)), FormatBandwidthShort(all),
                     FormatBandwidthShort(links));
}

// Returns the fastest simulated schedule of an engine other than found.front()'s; absent if there is none.
std::optional<RunnerUp> FastestOfOthers(const std::vector<Synthesis>& found) {
  std::optional<RunnerUp> fastest;
  for (const Synthesis& made : found) {
    if (made.engine == found.front().engine || !made.simulation || made.simulation->stopped) continue;
    if (!fastest || made.simulation->time_ps < fastest->time_ps)
      fastest = RunnerUp{made.engine, made.simulation->time_ps};
  }
  return fastest;
}

}  // namespace

StatusOr<ProgramTime> TimeProgram(const Plan& plan, std::optional<int64_t> known_ps, int64_t schedule_ps,
                                  const PlanOptions& options) {
  if (!known_ps) {
    XCCL_ASSIGN_OR_RETURN(known_ps, TimeOf(plan.topology, *plan.program, options));
  }
  return ProgramTime{*known_ps, ReasonOfLoss(plan.topology, options, *plan.program, *known_ps, schedule_ps)};
}

PlanResult Describe(Plan plan, const std::vector<Synthesis>& found, FastestProgram lowered,
                    std::optional<ProgramTime> time, const Bound& bound, const PlanOptions& options) {
  const Synthesis& kept = found.front();
  PlanResult result{.plan = std::move(plan)};
  const Plan& own = result.plan;
  result.note = lowered.note.empty() ? kept.note : lowered.note;
  result.faults = std::move(lowered.faults);
  result.simulation = *kept.simulation;
  result.bound = bound;
  result.exact = kept.exact;
  result.schedule_stats = Stats(own.schedule, own.collective, own.topology);
  result.relays = RelaysOf(own.schedule, own.collective, own.topology);
  result.next = FastestOfOthers(found);
  if (time) {
    const Program& program = own.program->program;
    result.loss = std::move(time->loss);
    result.program_time_ps = time->time_ps;
    result.program_stats =
        Stats(program, CollectiveSizes(own.program->collective, options.request.size_bytes));
    if (options.machine) result.in_flight = InFlight(*options.machine, program, *result.program_stats);
  }
  result.no_program = std::move(lowered.no_program);
  if (options.machine) result.machine = options.machine->source;
  if (options.machine_of_topology && !options.machine)
    result.no_machine = WhyNoModel(own.topology.gpu_arch());
  result.ratio = RatioOf(result.program_time_ps.value_or(result.simulation.time_ps), bound.bound_ps);
  return result;
}

}  // namespace xccl
