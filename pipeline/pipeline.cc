#include "pipeline/pipeline.h"

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/threads.h"
#include "base/units.h"
#include "ir/bitwise_same.h"
#include "ir/known_machines.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate_program.h"
#include "ir/translated.h"
#include "ir/verify/verify_plan.h"
#include "ir/verify/verify_schedule.h"
#include "synth/engines.h"
#include "synth/replan/replan.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

// A wrong plan from an engine is a bug of this program, not the user's error.
Status Proved(const std::vector<Violation>& violations, std::string_view engine) {
  const Status status = ToStatus(violations);
  return status.ok() ? status : BugError(std::string(engine) + ": it made a wrong plan: " + status.message());
}

// The engine's simulation of its plan, or a new one. Errors: kLimit where the deadline passes.
StatusOr<Simulation> SimulationOf(const Synthesis& made, const SynthesisRequest& request,
                                  const Deadline& deadline) {
  if (made.simulation && !made.simulation->stopped) return *made.simulation;
  SimulateOptions timing = TimingOf(request);
  timing.deadline = deadline;
  Simulation simulation = Simulate(made.schedule, made.collective, *request.topology, timing);
  if (simulation.stopped)
    return LimitReached(made.engine + ": " + deadline.Passed() + " before its plan was simulated");
  return simulation;
}

// The search leaves a share of the time to proofs, and a larger one to lowering, but not more than they take.
Deadline SearchDeadline(const PlanOptions& options) {
  return options.lower ? options.deadline.Leaving(0.5, 60) : options.deadline.Leaving(0.2, 10);
}

StatusOr<PlanResult> Complete(const Topology& topology, Synthesis made, const Bound& bound,
                              double synthesis_s, const PlanOptions& options, std::string& engine);

SimulateOptions ProgramTiming(const PlanOptions& options) {
  return {.size_bytes = options.request.size_bytes,
          .model = options.request.model,
          .machine = options.machine ? &*options.machine : nullptr,
          .deadline = options.deadline};
}

// Schedule → program. Requires: made.simulation, a schedule that verifies.
StatusOr<TimedProgram> LowerPlan(const Topology& topology, const Synthesis& made,
                                 const PlanOptions& options) {
  const SimulateOptions timing = ProgramTiming(options);
  return LowerTimed(
      made.schedule, made.collective, topology,
      {.size_bytes = timing.size_bytes,
       .model = timing.model,
       .machine = timing.machine,
       .max_blocks = options.max_blocks,
       .least_ps = LeastTime(made.schedule, made.collective, topology, timing, made.simulation->time_ps),
       .verify_passes = options.verify_passes,
       .deadline = options.deadline.Leaving(0.3, 20)});
}

StatusOr<int64_t> TimeOf(const Topology& topology, const LoweredProgram& lowered,
                         const PlanOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const Simulation simulation, SimulateProgram(lowered.program, lowered.collective,
                                                                     topology, ProgramTiming(options)));
  return simulation.time_ps;
}

// Schedule → program, simulated. Requires: as LowerPlan.
StatusOr<TimedProgram> LowerAndTime(const Topology& topology, const Synthesis& made,
                                    const PlanOptions& options) {
  XCCL_ASSIGN_OR_RETURN(TimedProgram lowered, LowerPlan(topology, made, options));
  if (!lowered.time_ps) {
    XCCL_ASSIGN_OR_RETURN(lowered.time_ps, TimeOf(topology, lowered.program, options));
  }
  return lowered;
}

constexpr size_t kMostLowered = 6;  // plans of one request
// Transfers of all but the first two, where they are not small: lowering 100,000 takes seconds.
constexpr int64_t kMostTransfersLowered = 100'000;
// Transfers of a plan that is lowered whatever its schedule takes: passes overlap what whole chunks do not.
constexpr int64_t kSmallPlan = 2000;
constexpr int64_t kLargestOverlap =
    3;                              // one part in so many that these passes may gain, with a machine model
constexpr int64_t kLeastGain = 50;  // one part in so many that another plan's program must gain
constexpr int64_t kLargeLoss = 10;  // one part in so many, over the schedule, that needs a reason

// Lowering a transfer's chunk, and its proof, take about so long: 9 s for 1.6 million (torus:8x8x8,
// alltoall).
constexpr double kSecondsOfMove = 6e-6;

// Why the schedule is kept without a program; empty where it need not be.
std::string ReasonNotToLower(const Topology& topology, const Synthesis& made, const Deadline& deadline) {
  const Schedule& schedule = made.schedule;
  const int64_t transfers =
      schedule.symmetry.empty() ? schedule.size() : ExpandedTransfers(schedule, made.collective, topology);
  if (!schedule.symmetry.empty() && transfers > kMostExpanded)
    return "the schedule, kept compressed, is too long to be lowered";
  const double seconds = static_cast<double>(transfers) * kSecondsOfMove;
  if (deadline() || seconds <= deadline.SecondsLeft()) return "";
  return fmt::format("its {} transfers take about {:.0f} s more; {}", transfers, std::ceil(seconds),
                     deadline.ToString());
}

// Lowers the plan and, where the schedules of others take less time than its program or are small, those as
// well. The program's time decides which is kept: `made` becomes that plan. Errors: kLimit where the deadline
// passed.
StatusOr<TimedProgram> LowerBest(const Topology& topology, const PlanOptions& options, Synthesis& made,
                                 std::string& note, std::vector<std::string>& faults) {
  std::vector<Synthesis> others = std::exchange(made.others, {});
  const auto lower = [&](const PlanOptions& by) -> StatusOr<TimedProgram> {
    return others.empty() ? LowerPlan(topology, made, by) : LowerAndTime(topology, made, by);
  };
  StatusOr<TimedProgram> best = lower(options);
  int64_t transfers = 0;
  for (size_t i = 0; i < others.size(); ++i) {
    Synthesis& other = others[i];
    if (i + 1 >= kMostLowered && other.schedule.size() > kTinyPlan) continue;
    const auto gains = [&](int64_t time_ps) {
      return !best.ok() || time_ps < *best->time_ps - *best->time_ps / kLeastGain;
    };
    if (!best.ok() && best.status().code() == StatusCode::kBug) break;
    if (options.deadline.IsOver()) break;
    const int64_t least_ps = LeastTime(other.schedule, other.collective, topology, ProgramTiming(options),
                                       other.simulation->time_ps);
    if (!gains(least_ps) && other.schedule.size() > kSmallPlan) continue;
    if (best.ok() && transfers > 0 && other.schedule.size() > kSmallPlan &&
        transfers + other.schedule.size() > kMostTransfersLowered)
      continue;
    if (options.machine && !gains(least_ps - least_ps / kLargestOverlap)) continue;
    if (!ReasonNotToLower(topology, other, options.deadline).empty() || other.schedule == made.schedule)
      continue;
    const Status proved = Proved(VerifySchedule(other.schedule, other.collective, topology), other.engine);
    transfers += other.schedule.size();
    StatusOr<TimedProgram> lowered = proved;
    if (proved.ok()) lowered = LowerAndTime(topology, other, options);
    if (!lowered.ok() && lowered.status().code() == StatusCode::kBug)
      faults.emplace_back(lowered.status().message());
    if (!lowered.ok() || !gains(*lowered->time_ps)) continue;
    note = best.ok()
               ? fmt::format("its program takes {}, that of {} {}", FormatDurationShort(*lowered->time_ps),
                             made.engine == other.engine ? "its faster schedule" : made.engine,
                             FormatDurationShort(*best->time_ps))
               : fmt::format("{} has no program: {}", made.engine, best.status().message());
    made = std::move(other);
    best = std::move(lowered);
  }
  // Programs of more threadblocks than a GPU runs at a time are better than none.
  if (best.ok() || options.max_blocks || best.status().code() != StatusCode::kInvalidInput) return best;
  PlanOptions unlimited = options;
  unlimited.max_blocks = std::numeric_limits<int32_t>::max();
  return lower(unlimited);
}

// Why a program takes much longer than its schedule; empty where it does not. With as many slots as there can
// be it is simulated again.
std::string ReasonOfLoss(const Topology& topology, const PlanOptions& options, const LoweredProgram& lowered,
                         int64_t time_ps, int64_t schedule_ps) {
  const int64_t wanted_ps = schedule_ps + schedule_ps / kLargeLoss;
  if (time_ps <= wanted_ps) return "";
  LoweredProgram roomy = lowered;
  roomy.program.slots = kMaxSlots;
  const StatusOr<int64_t> roomy_ps = TimeOf(topology, roomy, options);
  if (!roomy_ps.ok()) return "the time limit passed before the reason was found";
  if (options.machine) {
    PlanOptions links = options;
    links.machine.reset();
    const StatusOr<int64_t> links_ps = TimeOf(topology, lowered, links);
    if (links_ps.ok() && *links_ps <= wanted_ps)
      return "the launch, messages and hand-offs between threadblocks take the rest";
  }
  if (*roomy_ps <= wanted_ps) return fmt::format("senders wait for one of {} slots", lowered.program.slots);
  if (!lowered.program.groups.empty())
    return "a multicast or a sum in a switch waits until all of its members are ready";
  return "threadblocks wait for messages in the order of their instructions";
}

// Little's law, in rates: what is in flight over the time of a round trip. That time is the model's for what
// one threadblock has in flight.
std::string InFlight(const MachineModel& machine, const Program& program, const ProgramStats& stats) {
  const int64_t rate = machine.CostOf(program.protocol).block_bytes_per_s;
  if (rate == 0 || machine.nvlink_bytes_per_s == 0) return "";
  const double all = static_cast<double>(rate) * stats.threadblocks;
  const auto links = static_cast<double>(machine.nvlink_bytes_per_s);
  const double round_trip_ps = static_cast<double>(kBlockBytesInFlight) / static_cast<double>(rate) * 1e12;
  return fmt::format("{} x {} in {}: {} at most; the NVLinks of a GPU reach {}", stats.threadblocks,
                     FormatSize(kBlockBytesInFlight),
                     FormatDurationShort(static_cast<int64_t>(round_trip_ps)), FormatBandwidthShort(all),
                     FormatBandwidthShort(links));
}

// The engines and times of all plans of an answer.
std::vector<RunnerUp> MadeBeside(const Synthesis& made) {
  std::vector<RunnerUp> all;
  if (made.simulation) all.push_back({made.engine, made.simulation->time_ps});
  for (const Synthesis& other : made.others)
    if (other.simulation && !other.simulation->stopped)
      all.push_back({other.engine, other.simulation->time_ps});
  return all;
}

struct Timed {
  int64_t time_ps = 0;
  std::string loss;  // ReasonOfLoss
};

// Proves the plan and, beside that, since both take long, simulates its program. Errors: kLimit where the
// deadline passes before the program was simulated.
StatusOr<Timed> ProveAndTime(const PlanResult& result, std::optional<int64_t> known_ps,
                             const std::string& engine, const PlanOptions& options) {
  const Plan& plan = result.plan;
  StatusOr<Timed> timed = Timed{};
  const auto simulate = [&] {
    const StatusOr<int64_t> time_ps =
        known_ps ? StatusOr<int64_t>(*known_ps) : TimeOf(plan.topology, *plan.program, options);
    if (time_ps.ok()) {
      timed = Timed{*time_ps,
                    ReasonOfLoss(plan.topology, options, *plan.program, *time_ps, result.simulation.time_ps)};
    } else {
      timed = time_ps.status();
    }
  };
  StatusOr<std::thread> thread = StartThread(simulate);
  if (!thread.ok()) simulate();
  const Status proved = Proved(VerifyPlan(plan), engine);
  if (thread.ok()) thread->join();
  XCCL_RETURN_IF_ERROR(proved);
  return timed;
}

// Times the bound: no fresh plan is faster by more than a repaired plan is above the bound, so that one
// within this is kept unseen; others are set beside a fresh one.
constexpr double kRepairedWell = 1.05;
// Times a fresh plan's time: a repaired plan about as fast is kept, since it changes less of what runs.
constexpr double kRepairKept = 1.02;

// The repaired plan, or the engine's fresh one where that is faster or nothing can be repaired.
StatusOr<Synthesis> RepairedOrFresh(const Plan& from, const SynthesisRequest& request, const Engine& engine) {
  const Deadline& deadline = request.limits.deadline;
  StatusOr<Synthesis> repaired = BugError("the repaired plan was wrong");
  if (!request.IsPassedOver(kReplan)) repaired = Replan(from, request);
  if (repaired.ok()) {
    XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
    XCCL_ASSIGN_OR_RETURN(repaired->simulation, SimulationOf(*repaired, request, deadline));
    const auto time_ps = static_cast<double>(repaired->simulation->time_ps);
    if (time_ps <= kRepairedWell * static_cast<double>(bound.bound_ps)) return repaired;
    if (deadline.IsOver()) {
      repaired->note += "; no time was left to try a fresh plan";
      return repaired;
    }
  }
  StatusOr<Synthesis> fresh = engine.Synthesize(request);
  if (!repaired.ok()) {
    if (fresh.ok())
      fresh->note = "planned anew: " + std::string(repaired.status().message()) +
                    (fresh->note.empty() ? "" : "; " + fresh->note);
    return fresh;
  }
  const StatusOr<Simulation> simulated =
      fresh.ok() ? SimulationOf(*fresh, request, deadline) : StatusOr<Simulation>(fresh.status());
  if (!simulated.ok()) {
    repaired->note += "; no fresh plan was found";
    return repaired;
  }
  fresh->simulation = *simulated;
  const int64_t repaired_ps = repaired->simulation->time_ps, fresh_ps = simulated->time_ps;
  if (static_cast<double>(repaired_ps) <= kRepairKept * static_cast<double>(fresh_ps)) {
    repaired->note +=
        fmt::format("; a fresh plan, {}, takes {}", fresh->engine, FormatDurationShort(fresh_ps));
    return repaired;
  }
  fresh->note =
      fmt::format("planned anew: {} in place of {} for the repaired plan{}{}", FormatDurationShort(fresh_ps),
                  FormatDurationShort(repaired_ps), fresh->note.empty() ? "" : "; ", fresh->note);
  return fresh;
}

}  // namespace

PlanOptions OnMachineOf(const Topology& topology, PlanOptions options) {
  if (options.machine_of_topology && !options.machine) options.machine = MachineOfArch(topology.gpu_arch());
  return options;
}

StatusOr<PlanResult> PlanWith(const Topology& topology, const Collective& collective,
                              const PlanOptions& asked, const Synthesize& synthesize) {
  const PlanOptions options = OnMachineOf(topology, asked);
  const auto began = std::chrono::steady_clock::now();
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  Bound bound;
  if (options.request.bound != nullptr) {
    bound = *options.request.bound;
  } else {
    XCCL_ASSIGN_OR_RETURN(
        bound, LowerBound(topology, collective, options.request.size_bytes, options.request.model));
  }
  SynthesisRequest request = RequestOf(topology, collective, options, &bound);
  std::vector<std::string> faults;
  request.faults = &faults;
  while (true) {
    XCCL_ASSIGN_OR_RETURN(Synthesis made, synthesize(request));
    XCCL_ASSIGN_OR_RETURN(made.simulation, SimulationOf(made, request, options.deadline));
    // Engines leave other plans unsimulated; lowering compares their times, and passes over a plan without
    // one.
    if (options.lower)
      std::erase_if(made.others, [&](Synthesis& other) {
        StatusOr<Simulation> simulation = SimulationOf(other, request, options.deadline);
        if (!simulation.ok()) return true;
        other.simulation = *std::move(simulation);
        return false;
      });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    std::string engine = made.engine;
    StatusOr<PlanResult> result = RunGuarded(
        [&] { return Complete(topology, std::move(made), bound, seconds.count(), options, engine); });
    if (result.ok()) {
      result->faults.insert(result->faults.begin(), faults.begin(), faults.end());
      return result;
    }
    if (result.status().code() != StatusCode::kBug || engine == options.engine ||
        request.IsPassedOver(engine))
      return result;
    faults.emplace_back(result.status().message());
    request.passed_over.push_back(std::move(engine));
  }
}

StatusOr<PlanResult> MakePlan(const Topology& topology, const Collective& collective,
                              const PlanOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(options.engine));
  return PlanWith(topology, collective, options,
                  [&](const SynthesisRequest& request) { return engine->Synthesize(request); });
}

StatusOr<PlanResult> RepairPlan(const Plan& from, const std::string& place, const Topology& topology,
                                const Collective& collective, const PlanOptions& options) {
  if (from.collective.kind() != collective.kind() || from.collective.name() != collective.name())
    return InvalidInput(place + ": a plan for " + from.collective.name() + "; expected " + collective.name());
  const bool same = from.collective.spec() == collective.spec() &&
                    WriteNativeXml(from.topology) == WriteNativeXml(topology);
  XCCL_ASSIGN_OR_RETURN(const Engine* const chosen, FindEngine(options.engine));
  const Engine* const engine = same ? &ImprovingEngine() : chosen;
  return PlanWith(topology, collective, options, [&](SynthesisRequest request) -> StatusOr<Synthesis> {
    if (same) {
      const Synthesis start{.collective = from.collective,
                            .schedule = from.schedule,
                            .engine = from.made_by.engine,
                            .note = ""};
      if (request.IsPassedOver(engine->name)) return start;
      request.start = &start;
      StatusOr<Synthesis> improved = engine->Synthesize(request);
      if (!improved.ok() || improved->schedule != from.schedule) return improved;
      improved->engine = from.made_by.engine;
      improved->note = "as in " + place + ", which " + std::string(engine->name) + " did not make faster";
      return improved;
    }
    return RepairedOrFresh(from, request, *engine);
  });
}

StatusOr<PlanResult> CompletePlan(const Topology& topology, Synthesis made, const Bound& bound,
                                  double synthesis_s, const PlanOptions& options) {
  std::string engine;
  return Complete(topology, std::move(made), bound, synthesis_s, OnMachineOf(topology, options), engine);
}

namespace {

// As CompletePlan. `engine` becomes the one that made the plan at hand.
StatusOr<PlanResult> Complete(const Topology& topology, Synthesis made, const Bound& bound,
                              double synthesis_s, const PlanOptions& options, std::string& engine) {
  XCCL_RETURN_IF_ERROR(Proved(VerifySchedule(made.schedule, made.collective, topology), made.engine));
  const auto is_late = [&](const Status& status) {
    return status.code() == StatusCode::kLimit && options.deadline.can_pass();
  };
  const std::vector<RunnerUp> beside = MadeBeside(made);
  std::optional<TimedProgram> lowered;
  std::vector<std::string> faults;
  std::string no_program = options.lower ? ReasonNotToLower(topology, made, options.deadline) : std::string();
  if (options.lower && no_program.empty()) {
    std::string chosen;
    StatusOr<TimedProgram> best = LowerBest(topology, options, made, chosen, faults);
    engine = made.engine;
    if (!chosen.empty()) made.note = chosen;
    if (!best.ok() && !is_late(best.status())) return best.status();
    if (best.ok()) {
      lowered = *std::move(best);
    } else {
      no_program = best.status().message();
    }
  }
  PlanResult result{
      .plan = Plan{topology, std::move(made.collective), std::move(made.schedule), std::nullopt, {}}};
  Plan& plan = result.plan;
  result.note = std::move(made.note);
  result.faults = std::move(faults);
  result.synthesis_s = synthesis_s;
  result.simulation = *std::move(made.simulation);
  result.bound = bound;
  result.exact = made.exact;
  plan.bitwise_same = IsBitwiseSame(plan.schedule, plan.collective, topology);
  result.schedule_stats = Stats(plan.schedule, plan.collective, topology);
  for (const RunnerUp& other : beside)
    if (other.engine != made.engine && (!result.next || other.time_ps < result.next->time_ps))
      result.next = other;
  result.relays = RelaysOf(plan.schedule, plan.collective, topology);
  if (lowered) {
    plan.program = std::move(lowered->program);
    StatusOr<Timed> timed = ProveAndTime(result, lowered->time_ps, made.engine, options);
    if (!timed.ok() && !is_late(timed.status())) return timed.status();
    if (timed.ok()) {
      result.loss = std::move(timed->loss);
      result.program_time_ps = timed->time_ps;
      result.program_stats =
          Stats(plan.program->program, CollectiveSizes(plan.program->collective, options.request.size_bytes));
      if (options.machine)
        result.in_flight = InFlight(*options.machine, plan.program->program, *result.program_stats);
    } else {
      plan.program.reset();
      no_program = timed.status().message();
    }
  }
  result.no_program = std::move(no_program);
  if (options.machine) result.machine = options.machine->source;
  result.ratio = RatioOf(result.program_time_ps.value_or(result.simulation.time_ps), bound.bound_ps);
  plan.made_by = {.engine = made.engine,
                  .seed = options.request.seed,
                  .limits = options.limits_text,
                  .version = kVersion,
                  .size_bytes = options.request.size_bytes,
                  .model = options.request.model,
                  .machine = plan.program && options.machine ? options.machine->name : ""};
  return result;
}

}  // namespace

StatusOr<GroupsResult> PlanGroupsTogether(const Topology& topology, GroupRequest request,
                                          const PlanOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::string> faults;
  XCCL_ASSIGN_OR_RETURN(JointPlan plan, PlanGroups(topology, request,
                                                   {.engine = options.engine,
                                                    .model = options.request.model,
                                                    .seed = options.request.seed,
                                                    .allow_divergent = options.request.allow_divergent,
                                                    .faults = &faults,
                                                    .deadline = SearchDeadline(options)}));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  PlanOptions joint = options;
  joint.request.size_bytes = plan.joint.size_bytes;
  XCCL_ASSIGN_OR_RETURN(PlanResult result,
                        CompletePlan(topology, std::move(plan.made), plan.bound, seconds.count(), joint));
  result.faults.insert(result.faults.begin(), faults.begin(), faults.end());
  return GroupsResult{std::move(request.groups), std::move(plan.groups), plan.unaware_ps, std::move(result)};
}

StatusOr<smt::Front> PlanFront(const Topology& topology, const Collective& collective,
                               const PlanOptions& options) {
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  return smt::FindFront(RequestOf(topology, collective, options, nullptr), AllEngines());
}

SynthesisRequest RequestOf(const Topology& topology, const Collective& collective, const PlanOptions& options,
                           const Bound* bound) {
  SynthesisRequest request = options.request;
  request.topology = &topology;
  request.collective = &collective;
  request.bound = bound;
  request.limits.deadline = SearchDeadline(options);
  request.others_wanted = options.lower && options.machine.has_value();
  request.programs_wanted = options.lower;
  return request;
}

StatusOr<Simulation> ProvedTime(const Synthesis& made, const SynthesisRequest& request,
                                const Deadline& deadline) {
  XCCL_RETURN_IF_ERROR(
      Proved(VerifySchedule(made.schedule, made.collective, *request.topology), made.engine));
  return SimulationOf(made, request, deadline);
}

double RatioOf(int64_t time_ps, int64_t bound_ps) {
  if (bound_ps <= 0) return 1;
  return static_cast<double>(time_ps) / static_cast<double>(bound_ps);
}

}  // namespace xccl
