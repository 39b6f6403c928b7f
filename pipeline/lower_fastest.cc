// 1. Go through the schedules in the order of ByCostAndTime.
// 2. Lower a schedule if its program may be faster than the best so far and the work so far allows it
//    (MayReplace).
// 3. Keep one program of those that are about as fast as the fastest (Kept), and say why.
// 4. If no program fits the default limit of threadblocks, lower the first schedule without the limit.
#include "pipeline/lower_fastest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/units.h"
#include "ir/analysis/schedule_stats.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate_program.h"
#include "ir/tolerance.h"
#include "ir/translated.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/cost_model.h"
#include "synth/common/why_chosen.h"

namespace xccl {
namespace {

// A schedule of more transfers is long: with a machine model, lowering takes seconds. Only one long schedule
// of each engine is lowered, because the programs of its variations differ little.
constexpr int64_t kLong = kManyTransfers / 30;
// The most transfers of a small schedule, which is lowered in milliseconds. Without a machine model, a small
// schedule is lowered even if it takes longer than the best program, because the passes of its program may
// overlap its steps.
constexpr int64_t kSmall = kLong / 5;
// With a machine model, overlapping passes may make a program faster than LeastTime of its schedule. The
// program's time is taken to be at least this factor × LeastTime.
constexpr double kMostOverlapped = 2.0 / 3;
// Seconds that one core takes to lower one transfer and to prove the result.
constexpr double kSecondsPerTransfer = 6e-6;
// Seconds for each further chunk that a transfer moves, since the proof follows chunks (measured as below).
constexpr double kSecondsPerMoveProved = 4e-6;

// Bytes that lowering takes for a transfer: its instructions, and the passes' tables of them. The proof's
// cells take kBytesPerMove more for each chunk that the transfer moves. Measured on a mesh of 512 ranks: an
// allreduce of 257,532 transfers takes 130 MB more than its search, an alltoall of 261,632 transfers and 4.2
// million moves 600 MB.
constexpr double kBytesPerTransfer = 500;

// Returns the number of transfers of the plain form, from which the program is made.
int64_t TransfersOf(const Topology& topology, const Synthesis& made) {
  return ExpandedTransfers(made.schedule, made.collective, topology);
}

// Returns why the schedule cannot be lowered: its length, the memory, or the time left. Empty if it can, and
// once the deadline has passed, which lowering reports. `transfers`: those of the plain form.
std::string ReasonNotToLower(const Topology& topology, const Synthesis& made, int64_t transfers,
                             const Deadline& deadline) {
  const Schedule& schedule = made.schedule;
  if (!schedule.symmetry.empty() && transfers > MostTransfersOn(topology))
    return "the schedule, kept compressed, is too long to be lowered for all ranks; hint: emit --to program "
           "--rank R";
  int64_t moves = schedule.num_moves();
  for (const Automorphism& generator : schedule.symmetry) moves *= generator.order;
  const Status fits = CheckMemory(
      "lowering", fmt::format("the program of {} transfers", transfers),
      kBytesPerTransfer * static_cast<double>(transfers) + kBytesPerMove * static_cast<double>(moves));
  if (!fits.ok()) return fits.message();
  const double seconds = kSecondsPerTransfer * static_cast<double>(transfers) +
                         kSecondsPerMoveProved * static_cast<double>(moves - transfers);
  if (deadline() || seconds <= deadline.SecondsLeft()) return "";
  return fmt::format("its {} transfers take about {:.0f} s more; {}", transfers, std::ceil(seconds),
                     deadline.ToString());
}

int64_t LeastTimeOf(const Topology& topology, const PlanOptions& options, const Synthesis& made) {
  return LeastTime(made.schedule, made.collective, topology, ProgramTiming(options),
                   made.simulation->time_ps);
}

// Lowers the schedule to a program. The result has a time only if LowerTimed has simulated the program.
StatusOr<TimedProgram> Lower(const Topology& topology, const PlanOptions& options, const Synthesis& made,
                             int64_t least_ps) {
  return LowerTimed(made.schedule, made.collective, topology,
                    {.size_bytes = options.request.size_bytes,
                     .model = options.request.model,
                     .machine = options.machine ? &*options.machine : nullptr,
                     .max_blocks = options.max_blocks,
                     .least_ps = least_ps,
                     .verify_passes = options.verify_passes,
                     .deadline = options.deadline.Leaving(0.3, 20)});
}

// A schedule that may be lowered. Sorted candidates are in the order in which they are lowered.
struct Candidate {
  bool is_long;
  int64_t least_ps;   // LeastTime of the schedule
  size_t place;       // of the schedule, in `found`
  int64_t transfers;  // of its plain form
  auto operator<=>(const Candidate&) const = default;
};

// Lowers the schedule and simulates the program. Verifies the schedule first, unless it is the first of
// `found`, which verifies.
StatusOr<TimedProgram> ProveLowerAndTime(const Topology& topology, const PlanOptions& options,
                                         const std::vector<Synthesis>& found, const Candidate& candidate) {
  const Synthesis& made = found[candidate.place];
  if (candidate.place != 0)
    XCCL_RETURN_IF_ERROR(CheckProved(VerifySchedule(made.schedule, made.collective, topology), made.engine));
  XCCL_ASSIGN_OR_RETURN(TimedProgram lowered, Lower(topology, options, made, candidate.least_ps));
  if (!lowered.time_ps) {
    XCCL_ASSIGN_OR_RETURN(const Simulation simulation,
                          SimulateProgram(lowered.program.program, lowered.program.collective, topology,
                                          ProgramTiming(options)));
    lowered.time_ps = simulation.time_ps;
  }
  return lowered;
}

// A program that was made of a schedule.
struct Made {
  size_t place;  // of the schedule, in `found`
  TimedProgram program;
  Contender contender;
};

// Returns the schedules in the order in which they are lowered: long ones last, and within each part by
// LeastTime.
std::vector<Candidate> ByCostAndTime(const Topology& topology, const PlanOptions& options,
                                     const std::vector<Synthesis>& found) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < found.size(); ++i) {
    const int64_t transfers = TransfersOf(topology, found[i]);
    candidates.push_back({transfers > kLong, LeastTimeOf(topology, options, found[i]), i, transfers});
  }
  std::ranges::sort(candidates);
  return candidates;
}

// Estimates, before lowering, whether the program of a schedule of so many transfers may replace the best
// program, which takes best_ps. `lowered_transfers`: the transfers of all schedules that were lowered.
bool MayReplace(const PlanOptions& options, int64_t transfers, int64_t least_ps, int64_t best_ps,
                int64_t lowered_transfers) {
  if (transfers > kSmall && (!IsFaster(least_ps, best_ps) || lowered_transfers + transfers > kManyTransfers))
    return false;
  const auto overlapped_ps = static_cast<int64_t>(kMostOverlapped * static_cast<double>(least_ps));
  return !options.machine || IsFaster(overlapped_ps, best_ps);
}

// Makes the programs that may be the best. `failed` receives the error of each schedule that could not be
// lowered, in the order in which the schedules were tried.
std::vector<Made> LowerInTurn(const Topology& topology, const PlanOptions& options,
                              const std::vector<Synthesis>& found, std::vector<Status>& failed) {
  std::vector<Made> made;
  int64_t best_ps = std::numeric_limits<int64_t>::max(), lowered_transfers = 0;
  std::set<std::string> has_long;  // engines with a long schedule that was lowered
  for (const Candidate& candidate : ByCostAndTime(topology, options, found)) {
    const Synthesis& plan = found[candidate.place];
    if (!made.empty() &&
        (options.deadline.IsOver() ||
         !MayReplace(options, candidate.transfers, candidate.least_ps, best_ps, lowered_transfers)))
      continue;
    if (candidate.is_long && has_long.contains(plan.engine)) continue;
    const auto is_same = [&](const Made& other) { return found[other.place].schedule == plan.schedule; };
    if (std::ranges::any_of(made, is_same)) continue;
    if (!ReasonNotToLower(topology, plan, candidate.transfers, options.deadline).empty()) continue;
    if (candidate.is_long) has_long.insert(plan.engine);
    StatusOr<TimedProgram> program = ProveLowerAndTime(topology, options, found, candidate);
    lowered_transfers += candidate.transfers;
    if (!program.ok()) {
      failed.push_back(program.status());
      continue;
    }
    best_ps = std::min(best_ps, *program->time_ps);
    const Contender contender{plan.engine, *program->time_ps,
                              Stats(plan.schedule, plan.collective, topology).messages};
    made.push_back({candidate.place, *std::move(program), contender});
  }
  return made;
}

// Returns the program that is kept, of those that take up to kToleratedRatio times as long as the fastest: if
// the fastest has short messages, the one with the fewest messages; otherwise the first in `found`.
Made& Kept(const Topology& topology, int64_t size_bytes, const std::vector<Synthesis>& found,
           std::vector<Made>& made) {
  const auto time = [](const Made& m) { return static_cast<double>(m.contender.time_ps); };
  const Made& fastest = *std::ranges::min_element(made, {}, time);
  const double most_ps = kToleratedRatio * time(fastest);
  const Synthesis& plan = found[fastest.place];
  const bool short_messages =
      HasShortMessages(LinkUseOf(plan.schedule, plan.collective, topology, size_bytes));
  return *std::ranges::min_element(made, {}, [&](const Made& m) {
    return std::tuple(time(m) > most_ps, short_messages ? *m.contender.messages : 0, m.place);
  });
}

// Says why the program was kept. Empty if no other program was made.
std::string NoteOf(const Made& kept, const std::vector<Made>& made) {
  std::vector<Contender> others;
  std::set<std::string> engines;
  for (const Made& m : made) {
    engines.insert(m.contender.engine);
    if (&m != &kept) others.push_back(m.contender);
  }
  return others.empty() ? "" : WhyChosen(kept.contender, others, engines.size(), "program");
}

}  // namespace

bool IsLate(const Status& status, const PlanOptions& options) {
  return status.code() == StatusCode::kLimit && options.deadline.can_pass();
}

StatusOr<FastestProgram> LowerFastest(const Topology& topology, const PlanOptions& options,
                                      std::vector<Synthesis>& found) {
  FastestProgram result;
  result.no_program =
      ReasonNotToLower(topology, found.front(), TransfersOf(topology, found.front()), options.deadline);
  if (!result.no_program.empty()) return result;
  std::vector<Status> failed;
  std::optional<TimedProgram> best;
  size_t kept = 0;
  const auto lower = [&](const PlanOptions& limits) {
    const int64_t least_ps = LeastTimeOf(topology, limits, found.front());
    StatusOr<TimedProgram> only = Lower(topology, limits, found.front(), least_ps);
    if (only.ok())
      best = *std::move(only);
    else
      failed.insert(failed.begin(), only.status());
  };
  if (found.size() == 1) {
    lower(options);
  } else if (std::vector<Made> made = LowerInTurn(topology, options, found, failed); !made.empty()) {
    Made& chosen = Kept(topology, options.request.size_bytes, found, made);
    kept = chosen.place;
    if (kept != 0 || IsWhyChosen(found[kept].note)) result.note = NoteOf(chosen, made);
    best = std::move(chosen.program);
  }
  if (!best && !options.max_blocks && !failed.empty() && failed.front().code() == StatusCode::kInvalidInput) {
    PlanOptions unlimited = options;
    unlimited.max_blocks = std::numeric_limits<int32_t>::max();
    lower(unlimited);
  }
  if (best) {
    for (const Status& why : failed)
      if (why.code() == StatusCode::kBug) result.faults.emplace_back(why.message());
    const auto first = found.begin(), chosen = first + static_cast<std::ptrdiff_t>(kept);
    std::rotate(first, chosen, chosen + 1);
    result.program = std::move(best->program);
    result.time_ps = best->time_ps;
  } else if (failed.empty() || IsLate(failed.front(), options)) {
    result.no_program = failed.empty() ? options.deadline.Passed() : failed.front().message();
  } else {
    return failed.front();
  }
  return result;
}

}  // namespace xccl
