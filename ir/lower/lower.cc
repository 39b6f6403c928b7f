// Searches for the best program of a schedule. lower_once.cc lists the passes that make one program; this
// file decides which programs, the candidates, are made, and which one is kept. Candidates differ in three
// ways, each searched inside the one before:
//
// 1. Chunks. Waves are folded first (fold.h), if the schedule has any; the program then has few instructions.
//    The schedule's own chunks follow if the folded program loses time.
// 2. Variants of the schedule. First, trees of links are groups, and only additions that several ranks must
//    do in one order are fan-ins. With a machine model, every addition is a fan-in second, because the model
//    has a price for hand-offs between threadblocks that add to one chunk. Last, trees become chains if
//    groups lose time: a group's message goes on only when all members have room for it.
// 3. Forms of a variant's program (forms.h), the plainest first. The passes, the instances and the protocol
//    of each form are chosen by simulation (segments.h).
//
// The first candidate that takes no longer than the schedule, within 2 %, ends the searches of chunks and of
// forms, and chains are then not tried. A less plain candidate replaces a plainer one only if it saves 2 %. A
// deadline that passes ends the search with the best candidate so far.
#include "ir/lower/lower.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/lower/chains.h"
#include "ir/lower/fan_ins.h"
#include "ir/lower/fold.h"
#include "ir/lower/forms.h"
#include "ir/lower/lower_once.h"
#include "ir/lower/order.h"
#include "ir/lower/segments.h"
#include "ir/lower/threadblocks.h"
#include "ir/lower/verify_passes.h"
#include "ir/machine_model.h"
#include "ir/simulate/simulate_program.h"
#include "ir/tolerance.h"
#include "ir/translated.h"

namespace xccl {
namespace {

using namespace lowering;  // the search reads better without the prefix

// In a program of at most this many instructions, passes are refined in every form, which takes 0.2 s a form.
// In a larger program, they are refined in the best form alone.
constexpr int64_t kSmallProgram = 4000;
// A candidate that takes more than this many times as long as a plainer one is given up. Neither more
// segments nor a less plain form is expected to make up for that.
constexpr double kHopelessRatio = 1.25;

// The variants of a schedule (item 2 above).
enum class Variant {
  kPlain,   // trees are groups; only additions that several ranks must do in one order are fan-ins
  kFanIns,  // trees are groups; every addition is a fan-in
  kChains,  // trees are chains
};

// A program with its simulated time, which is absent if its form is not simulated (kLargeMoves).
struct Candidate {
  Program program;
  std::optional<int64_t> time_ps;
};

// The time to keep and the options of simulations, which all candidates of a schedule share.
struct Search {
  const Topology& topology;
  const LowerOptions& options;
  SimulateOptions timing;
  BlockLimits blocks;
  int64_t wanted_ps;  // LeastTime of the schedule

  PassVerifier Verifier(const ChunkedSchedule& source) const {
    return PassVerifier(options.verify_passes, source.collective, topology);
  }
  bool IsLate() const { return options.deadline(); }
  // Returns whether the deadline ended the work that returned the status.
  bool HasEnded(const Status& status) const { return status.code() == StatusCode::kLimit && IsLate(); }
  bool IsReachedBy(const Candidate& candidate) const {
    return candidate.time_ps && IsWithinTolerance(*candidate.time_ps, wanted_ps);
  }
};

// Returns whether the passes of every form can be refined at little cost.
bool IsSmall(const Program& program) { return NumInstructions(program) <= kSmallProgram; }

// Returns whether the candidate takes more than `ratio` times as long as a plainer one. Returns false if
// either has no time.
bool IsSlower(const Candidate& candidate, const std::optional<Candidate>& plainer, double ratio) {
  return plainer && plainer->time_ps && candidate.time_ps &&
         !IsWithin(*candidate.time_ps, ratio, *plainer->time_ps);
}

// Returns whether the candidate is faster than a plainer one, or there is no plainer one. A program without a
// time is too large to be compared and is never replaced.
bool IsBetter(const Candidate& candidate, const std::optional<Candidate>& plainer) {
  if (!plainer) return true;
  return candidate.time_ps && plainer->time_ps && IsFaster(*candidate.time_ps, *plainer->time_ps);
}

// Gives a program more passes and instances while each step helps. Does less work if `briefly`, or if the
// program is as fast as wanted. Does nothing if the program has no time.
Status Refine(const Search& search, const ChunkedSchedule& source, const SplitSchedule& split, bool briefly,
              Candidate& candidate) {
  if (!candidate.time_ps) return OkStatus();
  XCCL_ASSIGN_OR_RETURN(
      candidate.time_ps,
      MoreSegments(source.collective, source.topology, split.moves.moves, search.timing, search.blocks,
                   *candidate.time_ps, briefly || search.IsReachedBy(candidate), candidate.program));
  return OkStatus();
}

// Returns the best program of a variant over its forms. `plainer` is the best program of the variants before
// it. The search of chains ends at the first form that is hopeless beside `plainer`.
StatusOr<Candidate> BestForm(const Search& search, Variant variant, const ChunkedSchedule& source,
                             const OnceOptions& once, const SplitSchedule& split,
                             const std::optional<Candidate>& plainer) {
  const std::vector<Form> forms =
      search.options.form
          ? std::vector{*search.options.form}
          : FormsFor(source.schedule, source.collective, once.size_bytes, std::ssize(split.moves.moves));
  std::optional<Candidate> best;
  std::optional<Ordered> ordered;
  // The last program as LowerOnce made it: forms that follow one another may make the same program.
  std::optional<Program> last;
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
    if (best && search.HasEnded(timed.status())) break;
    XCCL_ASSIGN_OR_RETURN(const std::optional<int64_t> time_ps, timed);
    XCCL_RETURN_IF_ERROR(search.Verifier(source).Check("segments", program));
    Candidate candidate{std::move(program), time_ps};
    if (IsSmall(candidate.program) && !IsSlower(candidate, best, kHopelessRatio))
      XCCL_RETURN_IF_ERROR(
          Refine(search, source, split, IsSlower(candidate, best, kToleratedRatio), candidate));
    if (IsBetter(candidate, best)) best = std::move(candidate);
    if (variant == Variant::kChains && IsSlower(*best, plainer, kHopelessRatio)) break;
    if (search.IsReachedBy(*best)) break;
  }
  // Large programs take long to refine, so only the best form is refined.
  if (!IsSmall(best->program)) XCCL_RETURN_IF_ERROR(Refine(search, source, split, false, *best));
  return *std::move(best);
}

// Makes the best program of a variant. If it is better than `best`, it replaces `best`, in as few instances
// and passes as keep its time.
Status TryVariant(const Search& search, Variant variant, const ChunkedSchedule& source,
                  std::optional<Candidate>& best) {
  const OnceOptions once{.size_bytes = search.options.size_bytes,
                         .all_fan_ins = variant == Variant::kFanIns,
                         .limit_connections = !search.options.max_blocks,
                         .verify_passes = search.options.verify_passes};
  XCCL_ASSIGN_OR_RETURN(const SplitSchedule split, SplitOnce(source, once));
  StatusOr<Candidate> candidate = BestForm(search, variant, source, once, split, best);
  if (best && search.HasEnded(candidate.status())) return OkStatus();
  XCCL_RETURN_IF_ERROR(candidate.status());
  if (!IsBetter(*candidate, best)) return OkStatus();
  best = *std::move(candidate);
  if (!best->time_ps) return OkStatus();
  XCCL_ASSIGN_OR_RETURN(best->time_ps,
                        FewerSegments(source.collective, source.topology, split.moves.moves, search.timing,
                                      search.blocks, *best->time_ps, best->program));
  return OkStatus();
}

// Returns whether some additions may be fan-ins but need not be.
bool HasMoreFanIns(const ChunkedSchedule& source) {
  const auto find = [&](bool everywhere) {
    return FindFanIns(source.schedule, source.collective, source.topology, everywhere);
  };
  return find(true) != find(false);
}

// Returns the best program of a schedule in its chunks, over all variants. The pass `pass` made the schedule.
StatusOr<Candidate> BestVariant(const Search& search, std::string_view pass, const ChunkedSchedule& source) {
  XCCL_RETURN_IF_ERROR(search.Verifier(source).Check(pass, source.schedule));
  std::optional<Candidate> best;
  XCCL_RETURN_IF_ERROR(TryVariant(search, Variant::kPlain, source, best));
  if (search.timing.machine != nullptr && !search.IsLate() && HasMoreFanIns(source))
    XCCL_RETURN_IF_ERROR(TryVariant(search, Variant::kFanIns, source, best));
  const bool has_slow_groups =
      std::ranges::any_of(best->program.groups, HasSwitch) && best->time_ps && !search.IsReachedBy(*best);
  if (search.IsLate() || !has_slow_groups) return *std::move(best);
  const StatusOr<Schedule> chains = WithoutTrees(source.schedule, source.topology);
  if (!chains.ok()) return *std::move(best);
  XCCL_RETURN_IF_ERROR(search.Verifier(source).Check("chains", *chains));
  XCCL_RETURN_IF_ERROR(
      TryVariant(search, Variant::kChains, {*chains, source.collective, source.topology}, best));
  return *std::move(best);
}

// Simulates a program whose form was not simulated, so that it can be compared. Its time stays absent if the
// deadline passes.
Status AddTime(const Search& search, const ChunkedSchedule& source, Candidate& candidate) {
  if (candidate.time_ps) return OkStatus();
  const StatusOr<Simulation> simulation =
      SimulateProgram(candidate.program, source.collective, source.topology, search.timing);
  if (simulation.ok()) candidate.time_ps = simulation->time_ps;
  return search.HasEnded(simulation.status()) ? OkStatus() : simulation.status();
}

TimedProgram InChunksOf(const Collective& collective, Candidate candidate) {
  return {{collective, std::move(candidate.program)}, candidate.time_ps};
}

// Returns whether all transfers are multicasts or in-switch reductions.
bool HasOnlyTrees(const Schedule& schedule, const Topology& topology) {
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
  SimulateOptions on_links = options;
  on_links.machine = nullptr;
  if (options.machine == nullptr)
    return links_ps ? *links_ps : Simulate(schedule, collective, topology, on_links).time_ps;
  MachineModel machine = *options.machine;
  if (HasOnlyTrees(schedule, topology))
    machine.nvlink_bytes_per_s = machine.nvlink_bytes_per_s / 1000 * machine.switch_per_mille;
  const Topology reached = WithReachedBandwidths(topology, machine);
  return options.machine->launch_ps + Simulate(schedule, collective, reached, on_links).time_ps;
}

StatusOr<LoweredProgram> LowerFolded(const Schedule& schedule, const Collective& collective,
                                     const Topology& topology, const LowerOptions& options) {
  XCCL_ASSIGN_OR_RETURN(TimedProgram lowered, LowerTimed(schedule, collective, topology, options));
  return std::move(lowered.program);
}

StatusOr<TimedProgram> LowerTimed(const Schedule& schedule, const Collective& collective,
                                  const Topology& topology, const LowerOptions& options) {
  // Passes on the schedule: symmetry is written out, and waves become one chunk.
  const StatusOr<Schedule> expanded =
      Expand(schedule, collective, topology, kMostTransfers, options.deadline);
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
    XCCL_ASSIGN_OR_RETURN(Candidate only, BestVariant(search, "expand", own));
    return InChunksOf(collective, std::move(only));
  }
  const ChunkedSchedule folded{waves->schedule, waves->collective, topology};
  XCCL_ASSIGN_OR_RETURN(Candidate in_waves, BestVariant(search, "fold", folded));
  XCCL_RETURN_IF_ERROR(AddTime(search, folded, in_waves));
  // A program in the schedule's own chunks has an instruction for every chunk, which costs more than a pass
  // of a folded chunk.
  const bool is_own_too_large = own.schedule.num_moves() > kManyMoves;
  if (search.IsLate() || search.IsReachedBy(in_waves) || is_own_too_large)
    return InChunksOf(folded.collective, std::move(in_waves));
  StatusOr<Candidate> in_own = BestVariant(search, "expand", own);
  if (in_own.ok()) XCCL_RETURN_IF_ERROR(AddTime(search, own, *in_own));
  if (!in_own.ok() && !search.HasEnded(in_own.status())) return in_own.status();
  if (!in_own.ok() || !in_own->time_ps || IsWithinTolerance(*in_waves.time_ps, *in_own->time_ps))
    return InChunksOf(folded.collective, std::move(in_waves));
  return InChunksOf(collective, *std::move(in_own));
}

}  // namespace xccl
