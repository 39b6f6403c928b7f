// 1. Lower the first schedule, which the engine prefers.
// 2. Go through the other schedules in order. Lower a schedule if it is small, or if its simulated time is
//    less than the best program's and the work so far allows it (MayReplace).
// 3. Replace the best program by a new one that is at least 2 % faster.
//    Remember all others, to say why the best was kept.
// 4. If no program fits the default limit of threadblocks, lower the first schedule without the limit.
#include "pipeline/lower_fastest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/analysis/schedule_stats.h"
#include "ir/lower/lower.h"
#include "ir/lower/tolerance.h"
#include "ir/simulate/simulate_program.h"
#include "ir/translated.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/cost_model.h"
#include "synth/common/why_chosen.h"

namespace xccl {
namespace {

// The most schedules of one request that are lowered. Schedules of up to kTinyPlan transfers do not count.
constexpr size_t kMostLowered = 6;
// The most transfers of a small schedule, which is lowered in milliseconds. A small schedule is lowered even
// if it takes longer than the best program, because the passes of its program may overlap its steps.
constexpr int64_t kFewTransfers = 2000;
// With a machine model, overlapping passes may make a program faster than LeastTime of its schedule. The
// program's time is taken to be at least this factor × LeastTime.
constexpr double kMostOverlapped = 2.0 / 3;
// Seconds that one core takes to lower one transfer and to prove the result.
constexpr double kSecondsOfTransfer = 6e-6;

// Returns why the schedule cannot be lowered, because of its length or the deadline; empty if it can.
std::string ReasonNotToLower(const Topology& topology, const Synthesis& made, const Deadline& deadline) {
  const Schedule& schedule = made.schedule;
  const int64_t transfers =
      schedule.symmetry.empty() ? schedule.size() : ExpandedTransfers(schedule, made.collective, topology);
  if (!schedule.symmetry.empty() && transfers > kMostExpanded)
    return "the schedule, kept compressed, is too long to be lowered";
  const double seconds = static_cast<double>(transfers) * kSecondsOfTransfer;
  if (deadline() || seconds <= deadline.SecondsLeft()) return "";
  return fmt::format("its {} transfers take about {:.0f} s more; {}", transfers, std::ceil(seconds),
                     deadline.ToString());
}

int64_t LeastTimeOf(const Topology& topology, const PlanOptions& options, const Synthesis& made) {
  return LeastTime(made.schedule, made.collective, topology, ProgramTiming(options),
                   made.simulation->time_ps);
}

// Lowers the schedule to a program. The result has a time only if LowerTimed has simulated the program.
StatusOr<TimedProgram> Lower(const Topology& topology, const PlanOptions& options, const Synthesis& made) {
  return LowerTimed(made.schedule, made.collective, topology,
                    {.size_bytes = options.request.size_bytes,
                     .model = options.request.model,
                     .machine = options.machine ? &*options.machine : nullptr,
                     .max_blocks = options.max_blocks,
                     .least_ps = LeastTimeOf(topology, options, made),
                     .verify_passes = options.verify_passes,
                     .deadline = options.deadline.Leaving(0.3, 20)});
}

// Lowers the schedule to a program, and simulates the program if LowerTimed has not done so.
StatusOr<TimedProgram> LowerAndTime(const Topology& topology, const PlanOptions& options,
                                    const Synthesis& made) {
  XCCL_ASSIGN_OR_RETURN(TimedProgram lowered, Lower(topology, options, made));
  if (!lowered.time_ps) {
    XCCL_ASSIGN_OR_RETURN(const Simulation simulation,
                          SimulateProgram(lowered.program.program, lowered.program.collective, topology,
                                          ProgramTiming(options)));
    lowered.time_ps = simulation.time_ps;
  }
  return lowered;
}

// Verifies the schedule, then lowers and simulates it.
StatusOr<TimedProgram> ProveLowerAndTime(const Topology& topology, const PlanOptions& options,
                                         const Synthesis& made) {
  XCCL_RETURN_IF_ERROR(CheckProved(VerifySchedule(made.schedule, made.collective, topology), made.engine));
  return LowerAndTime(topology, options, made);
}

// Returns whether a program of this time is so much faster than the best program that it replaces it.
bool Replaces(int64_t time_ps, const StatusOr<TimedProgram>& best) {
  return !best.ok() || lowering::IsFaster(time_ps, *best->time_ps);
}

// Estimates, before lowering, whether the schedule's program may replace the best program.
// `lowered_transfers`: transfers of all schedules that were lowered after the first.
bool MayReplace(const Topology& topology, const PlanOptions& options, const Synthesis& other,
                const StatusOr<TimedProgram>& best, int64_t lowered_transfers) {
  const int64_t least_ps = LeastTimeOf(topology, options, other);
  const bool small = other.schedule.size() <= kFewTransfers;
  if (!small && !Replaces(least_ps, best)) return false;
  if (!small && best.ok() && lowered_transfers + other.schedule.size() > kManyTransfers) return false;
  const auto overlapped_ps = static_cast<int64_t>(kMostOverlapped * static_cast<double>(least_ps));
  if (options.machine && !Replaces(overlapped_ps, best)) return false;
  return ReasonNotToLower(topology, other, options.deadline).empty();
}

Contender ContenderOf(const Topology& topology, const Synthesis& made, const TimedProgram& program) {
  return {made.engine, *program.time_ps, Stats(made.schedule, made.collective, topology).messages};
}

std::string NoteOf(const Synthesis& kept, const TimedProgram& program, const Synthesis& before,
                   const StatusOr<TimedProgram>& best) {
  if (!best.ok()) return fmt::format("{} has no program: {}", before.engine, best.status().message());
  return fmt::format("its program takes {}, that of {} {}", FormatDurationShort(*program.time_ps),
                     before.engine == kept.engine ? "another of its schedules" : before.engine,
                     FormatDurationShort(*best->time_ps));
}

}  // namespace

bool IsLate(const Status& status, const PlanOptions& options) {
  return status.code() == StatusCode::kLimit && options.deadline.can_pass();
}

StatusOr<FastestProgram> LowerFastest(const Topology& topology, const PlanOptions& options,
                                      std::vector<Synthesis>& found) {
  FastestProgram result;
  result.no_program = ReasonNotToLower(topology, found.front(), options.deadline);
  if (!result.no_program.empty()) return result;
  const auto lower_first = found.size() == 1 ? &Lower : &LowerAndTime;
  StatusOr<TimedProgram> best = lower_first(topology, options, found.front());
  size_t kept = 0;
  int64_t lowered_transfers = 0;
  std::vector<Contender> refused;  // programs that were made and did not replace the best
  for (size_t i = 1; i < found.size(); ++i) {
    if (options.deadline.IsOver() || (!best.ok() && best.status().code() == StatusCode::kBug)) break;
    const Synthesis& other = found[i];
    if (i >= kMostLowered && other.schedule.size() > kTinyPlan) continue;
    if (!MayReplace(topology, options, other, best, lowered_transfers) ||
        other.schedule == found[kept].schedule)
      continue;
    StatusOr<TimedProgram> lowered = ProveLowerAndTime(topology, options, other);
    lowered_transfers += other.schedule.size();
    if (!lowered.ok() && lowered.status().code() == StatusCode::kBug)
      result.faults.emplace_back(lowered.status().message());
    if (lowered.ok() && !Replaces(*lowered->time_ps, best))
      refused.push_back(ContenderOf(topology, other, *lowered));
    if (!lowered.ok() || !Replaces(*lowered->time_ps, best)) continue;
    result.note = NoteOf(other, *lowered, found[kept], best);
    kept = i;
    best = std::move(lowered);
  }
  if (best.ok() && !refused.empty() && IsWhyChosen(found[kept].note) && result.note.empty()) {
    std::set<std::string> engines = {found[kept].engine};
    for (const Contender& other : refused) engines.insert(other.engine);
    result.note = WhyChosen(ContenderOf(topology, found[kept], *best), refused, engines.size(), "program");
  }
  if (!best.ok() && best.status().code() == StatusCode::kInvalidInput && !options.max_blocks) {
    PlanOptions unlimited = options;
    unlimited.max_blocks = std::numeric_limits<int32_t>::max();
    best = lower_first(topology, unlimited, found.front());
  }
  const auto first = found.begin(), chosen = first + static_cast<std::ptrdiff_t>(kept);
  std::rotate(first, chosen, chosen + 1);
  if (best.ok()) {
    result.program = std::move(best->program);
    result.time_ps = best->time_ps;
  } else if (IsLate(best.status(), options)) {
    result.no_program = best.status().message();
  } else {
    return best.status();
  }
  return result;
}

}  // namespace xccl
