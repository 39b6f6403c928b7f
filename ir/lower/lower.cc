// The search for a program. lower_once.cc lists the passes that make one program; this file decides which
// programs are made, and which one is kept. Candidates differ in three ways, one inside the other:
//
// 1. Chunks. Waves of chunks are folded into one chunk each first, where the schedule has any; the program
//    then has few instructions. The schedule's own chunks follow where the folded program loses time.
// 2. Variants of these chunks' schedule. First, trees of links are groups, and additions are fan-ins only
//    where several ranks must add in one order. With a machine model, which has a price for the hand-offs
//    between threadblocks that add to one chunk, every addition is a fan-in second. Last, trees become
//    chains, where groups lose time: a group's message goes on only when all members have room for it.
// 3. Forms of a variant's program (forms.h), plainest first. Passes, instances and the protocol of each are
//    chosen by simulation (segments.h).
//
// The plainest candidate that takes no longer than the schedule, within 2 %, ends each of the three searches.
// Where no candidate does, a less plain one must save 2 % to replace a plainer one. A deadline that passes
// ends the search with the best candidate so far.
#include "ir/lower/lower.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/lower/chains.h"
#include "ir/lower/fan_ins.h"
#include "ir/lower/fold.h"
#include "ir/lower/forms.h"
#include "ir/lower/lower_once.h"
#include "ir/lower/segments.h"
#include "ir/lower/threadblocks.h"
#include "ir/lower/tolerance.h"
#include "ir/lower/verify_passes.h"
#include "ir/machine_model.h"
#include "ir/simulate/simulate_program.h"
#include "ir/translated.h"

namespace xccl {
namespace {

using namespace lowering;  // the search reads better without it

// Above so many moves a program is not simulated in every form; fewer where a folded program is at hand.
constexpr int64_t kLargeMoves = 500'000;
constexpr int64_t kLargeUnfoldedMoves = 100'000;
constexpr int64_t kMostUnfoldedMoves = 200'000;  // where a folded program is at hand
constexpr int64_t kSmallProgram = 4000;          // instructions; a form of so many is refined in 0.2 s
constexpr double kLargeTolerance = 1.05;         // for the folded program where its own chunks are above that
// Ratios to the time of a plainer program.
constexpr double kHopelessRatio = 1.25;      // the first form of the chains: no other will be faster
constexpr double kRecoverableRatio = 1.125;  // more segments may make up for so much, now and then
constexpr double kNearRatio = 1.01;          // more segments often make up for so much

// One way to lower the schedule. The simulated time is absent where the program was too large to be simulated
// in every form.
struct Candidate {
  Program program;
  std::optional<int64_t> time_ps;
};

// Guides the whole search.
struct Search {
  const Topology& topology;
  const LowerOptions& options;
  SimulateOptions timing;
  BlockLimits blocks;
  int64_t wanted_ps;  // the schedule's time

  // Verifies a schedule that a pass made, with verify_passes.
  Status Check(std::string_view pass, const ChunkedSchedule& made) const {
    return PassVerifier(options.verify_passes, made.collective, topology).Check(pass, made.schedule);
  }
  bool IsLate() const { return options.deadline(); }
  bool IsReachedBy(const Candidate& candidate) const {
    return candidate.time_ps && IsWithinTolerance(*candidate.time_ps, wanted_ps);
  }
};

int64_t NumMoves(const Schedule& schedule) {
  return std::accumulate(schedule.count.begin(), schedule.count.end(), int64_t{0});
}

// Does it cost little to refine the passes of every form?
bool IsSmall(const Program& program) { return NumInstructions(program) <= kSmallProgram; }

// Is the candidate slower than a plainer one, which has as many segments as help it, by more than the ratio?
bool IsSlower(const Candidate& candidate, const std::optional<Candidate>& plainer, double ratio) {
  return plainer && plainer->time_ps && candidate.time_ps &&
         !IsWithin(*candidate.time_ps, ratio, *plainer->time_ps);
}

// Is the candidate faster than a plainer one? Large programs, which have no time, are never replaced.
bool IsBetter(const Candidate& candidate, const std::optional<Candidate>& plainer) {
  if (!plainer) return true;
  return candidate.time_ps && plainer->time_ps && IsFaster(*candidate.time_ps, *plainer->time_ps);
}

// Gives a timed program more passes and instances while each step helps; `briefly` with less work.
Status Refine(const Search& search, const ChunkedSchedule& source, const SplitSchedule& split, bool briefly,
              Candidate& candidate) {
  if (!candidate.time_ps) return OkStatus();
  XCCL_ASSIGN_OR_RETURN(
      candidate.time_ps,
      MoreSegments(source.collective, source.topology, split.moves.moves, search.timing, search.blocks,
                   *candidate.time_ps, briefly || search.IsReachedBy(candidate), candidate.program));
  return OkStatus();
}

// A schedule as one variant has it, and the forms that its program may have.
struct Variant {
  const ChunkedSchedule& source;
  OnceOptions once;
  SplitSchedule split;
  std::vector<Form> forms;
  bool is_chains = false;
};

// The best program of a variant. `plainer`: the best of the variants before it. Chains end their search at
// the first form that is far slower than groups.
StatusOr<Candidate> BestForm(const Search& search, const Variant& variant,
                             const std::optional<Candidate>& plainer) {
  const auto& [source, once, split, forms, is_chains] = variant;
  const PassVerifier verify(once.verify_passes, source.collective, source.topology);
  std::optional<Candidate> best;
  std::optional<Ordered> ordered;
  std::optional<Program> last;  // in one pass: forms that follow one another may make the same program
  for (const Form& form : forms) {
    if (best && search.IsLate()) break;
    XCCL_ASSIGN_OR_RETURN(Program program, LowerOnce(source, once, split, form, ordered));
    if (last == program) continue;
    last = program;
    const Program* const like = best                                ? &best->program
                                : plainer && !search.timing.machine ? &plainer->program
                                                                    : nullptr;
    const StatusOr<std::optional<int64_t>> timed =
        SetSegments(form.segments, source.collective, source.topology, split.moves.moves, search.timing,
                    search.blocks, like, program);
    if (best && timed.status().code() == StatusCode::kLimit && search.IsLate()) break;
    XCCL_ASSIGN_OR_RETURN(const std::optional<int64_t> time_ps, timed);
    XCCL_RETURN_IF_ERROR(verify.Check("segments", program));
    Candidate candidate{std::move(program), time_ps};
    if (IsSmall(candidate.program) && !IsSlower(candidate, best, kRecoverableRatio))
      XCCL_RETURN_IF_ERROR(Refine(search, source, split, IsSlower(candidate, best, kNearRatio), candidate));
    if (IsBetter(candidate, best)) best = std::move(candidate);
    if (is_chains && IsSlower(*best, plainer, kHopelessRatio)) break;
    if (search.IsReachedBy(*best)) break;
  }
  // Large programs take long to refine, so the best form alone is refined.
  if (!IsSmall(best->program)) XCCL_RETURN_IF_ERROR(Refine(search, source, split, false, *best));
  return *std::move(best);
}

// Where the best program of a variant is better than `best`, it replaces it, in as few passes and instances
// as keep its time. Above `large_moves` moves programs have one form.
Status TryVariant(const Search& search, const ChunkedSchedule& source, bool all_fan_ins, bool is_chains,
                  int64_t large_moves, std::optional<Candidate>& best) {
  const OnceOptions once{.size_bytes = search.options.size_bytes,
                         .all_fan_ins = all_fan_ins,
                         .limit_connections = !search.options.max_blocks,
                         .verify_passes = search.options.verify_passes};
  XCCL_ASSIGN_OR_RETURN(SplitSchedule split, SplitOnce(source, once));
  std::vector<Form> forms = search.options.form
                                ? std::vector{*search.options.form}
                                : FormsFor(source.schedule, source.collective, once.size_bytes,
                                           std::ssize(split.moves.moves), large_moves);
  const Variant variant{source, once, std::move(split), std::move(forms), is_chains};
  XCCL_ASSIGN_OR_RETURN(Candidate candidate, BestForm(search, variant, best));
  if (!IsBetter(candidate, best)) return OkStatus();
  best = std::move(candidate);
  if (!best->time_ps) return OkStatus();
  XCCL_ASSIGN_OR_RETURN(best->time_ps,
                        FewerSegments(source.collective, source.topology, variant.split.moves.moves,
                                      search.timing, search.blocks, *best->time_ps, best->program));
  return OkStatus();
}

// Are there additions that need not be fan-ins, but may be?
bool HasMoreFanIns(const ChunkedSchedule& source) {
  const auto find = [&](bool everywhere) {
    return FindFanIns(source.schedule, source.collective, source.topology, everywhere);
  };
  return find(true) != find(false);
}

// The best program of one schedule in its chunks, over all variants. `pass` has made the schedule.
StatusOr<Candidate> BestVariant(const Search& search, std::string_view pass, const ChunkedSchedule& source,
                                int64_t large_moves) {
  XCCL_RETURN_IF_ERROR(search.Check(pass, source));
  std::optional<Candidate> best;
  XCCL_RETURN_IF_ERROR(TryVariant(search, source, false, false, large_moves, best));
  if (search.timing.machine != nullptr && !search.IsLate() && HasMoreFanIns(source))
    XCCL_RETURN_IF_ERROR(TryVariant(search, source, true, false, large_moves, best));
  const bool has_slow_trees =
      std::ranges::any_of(best->program.groups, HasSwitch) && best->time_ps && !search.IsReachedBy(*best);
  if (search.IsLate() || !has_slow_trees) return *std::move(best);
  const StatusOr<Schedule> chains = WithoutTrees(source.schedule, source.topology);
  if (!chains.ok()) return *std::move(best);
  const ChunkedSchedule chained{*chains, source.collective, source.topology};
  XCCL_RETURN_IF_ERROR(search.Check("chains", chained));
  XCCL_RETURN_IF_ERROR(TryVariant(search, chained, false, true, large_moves, best));
  return *std::move(best);
}

// Simulates a program that was too large for it, so that it can be compared. Its time stays absent where the
// deadline passes.
Status AddTime(const Search& search, const ChunkedSchedule& source, Candidate& candidate) {
  if (candidate.time_ps) return OkStatus();
  const StatusOr<Simulation> simulation =
      SimulateProgram(candidate.program, source.collective, source.topology, search.timing);
  if (simulation.ok()) candidate.time_ps = simulation->time_ps;
  return simulation.ok() || search.IsLate() ? OkStatus() : simulation.status();
}

// Is the folded program good enough that the schedule's own chunks need not be lowered? Many chunks cost much
// to be lowered, and their programs run worse.
bool IsGoodEnough(const Search& search, const Candidate& folded, const Schedule& plain) {
  const int64_t own_moves = NumMoves(plain);
  if (own_moves > kMostUnfoldedMoves || search.IsReachedBy(folded)) return true;
  return own_moves > kLargeUnfoldedMoves && folded.time_ps &&
         IsWithin(*folded.time_ps, kLargeTolerance, search.wanted_ps);
}

TimedProgram InChunksOf(const Collective& collective, Candidate candidate) {
  return {{collective, std::move(candidate.program)}, candidate.time_ps};
}

// Are all transfers multicasts, or sums in switches?
bool IsOfTrees(const Schedule& schedule, const Topology& topology) {
  std::vector<Rank> from, to;
  for (int32_t p = 0; p < schedule.paths.size(); ++p) {
    PathEnds(topology, schedule.paths[PathId(p)], from, to);
    if (from.size() == 1 && to.size() == 1) return false;
  }
  return true;
}

}  // namespace

int64_t LeastTime(const Schedule& schedule, const Collective& collective, const Topology& topology,
                  const SimulateOptions& options, std::optional<int64_t> links_ps) {
  SimulateOptions of_schedule = options;
  of_schedule.machine = nullptr;
  if (options.machine == nullptr)
    return links_ps ? *links_ps : Simulate(schedule, collective, topology, of_schedule).time_ps;
  MachineModel machine = *options.machine;
  if (IsOfTrees(schedule, topology))
    machine.nvlink_bytes_per_s = machine.nvlink_bytes_per_s / 1000 * machine.switch_per_mille;
  const Topology reached = WithReachedBandwidths(topology, machine);
  return options.machine->launch_ps + Simulate(schedule, collective, reached, of_schedule).time_ps;
}

StatusOr<LoweredProgram> LowerFolded(const Schedule& schedule, const Collective& collective,
                                     const Topology& topology, const LowerOptions& options) {
  XCCL_ASSIGN_OR_RETURN(TimedProgram lowered, LowerTimed(schedule, collective, topology, options));
  return std::move(lowered.program);
}

StatusOr<TimedProgram> LowerTimed(const Schedule& schedule, const Collective& collective,
                                  const Topology& topology, const LowerOptions& options) {
  // Passes on the schedule: symmetry is written out, and waves become one chunk.
  const StatusOr<Schedule> expanded = Expand(schedule, collective, topology, kMostExpanded, options.deadline);
  if (!expanded.ok()) return Annotate(expanded.status(), "lower");
  const ChunkedSchedule own{*expanded, collective, topology};
  const std::optional<Folded> waves = options.fold ? FoldWaves(own.schedule, collective) : std::nullopt;

  const SimulateOptions timing{.size_bytes = options.size_bytes,
                               .model = options.model,
                               .machine = options.machine,
                               .deadline = options.deadline};
  const int32_t most_blocks = options.max_blocks.value_or(kMostBlocks);
  const Search search{
      topology,
      options,
      timing,
      {most_blocks, options.max_blocks || !options.machine ? most_blocks : kDefaultBlocks},
      options.least_ps ? *options.least_ps : LeastTime(own.schedule, collective, topology, timing)};
  if (!waves) {
    XCCL_ASSIGN_OR_RETURN(Candidate only, BestVariant(search, "expand", own, kLargeMoves));
    return InChunksOf(collective, std::move(only));
  }
  const ChunkedSchedule folded{waves->schedule, waves->collective, topology};
  XCCL_ASSIGN_OR_RETURN(Candidate in_waves, BestVariant(search, "fold", folded, kLargeMoves));
  XCCL_RETURN_IF_ERROR(AddTime(search, folded, in_waves));
  if (search.IsLate() || IsGoodEnough(search, in_waves, own.schedule))
    return InChunksOf(folded.collective, std::move(in_waves));
  XCCL_ASSIGN_OR_RETURN(Candidate in_own, BestVariant(search, "expand", own, kLargeUnfoldedMoves));
  XCCL_RETURN_IF_ERROR(AddTime(search, own, in_own));
  if (!in_own.time_ps || IsWithinTolerance(*in_waves.time_ps, *in_own.time_ps))
    return InChunksOf(folded.collective, std::move(in_waves));
  return InChunksOf(collective, std::move(in_own));
}

}  // namespace xccl
