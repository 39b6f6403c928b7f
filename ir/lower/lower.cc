// The list of passes. One order over all sends and receives is fixed early; every later pass keeps that
// order, so that none can make the program deadlock or read the wrong value. Two decisions are made by
// trying: which form a program has (forms.h), and which form of the schedule is lowered. The latter are at
// most six: folded or in its own chunks, and each with trees as groups, with more fan-ins, or with chains.
#include "ir/lower/lower.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "ir/lower/buffers.h"
#include "ir/lower/chains.h"
#include "ir/lower/dependencies.h"
#include "ir/lower/fan_ins.h"
#include "ir/lower/fold.h"
#include "ir/lower/forms.h"
#include "ir/lower/fuse.h"
#include "ir/lower/instructions.h"
#include "ir/lower/merge.h"
#include "ir/lower/moves.h"
#include "ir/lower/order.h"
#include "ir/lower/paths.h"
#include "ir/lower/segments.h"
#include "ir/lower/threadblocks.h"
#include "ir/lower/verify_passes.h"
#include "ir/machine_model.h"
#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"
#include "ir/translated.h"

namespace xccl {
namespace {

// Above so many moves a program is not simulated in every form; fewer where a folded program is at hand.
constexpr int64_t kLargeMoves = 500'000;
constexpr int64_t kLargeUnfoldedMoves = 100'000;
constexpr int64_t kMostUnfoldedMoves = 200'000;  // where a folded program is at hand
constexpr int64_t kSmallProgram = 4000;          // instructions; a form of so many is refined in 0.2 s
constexpr int64_t kHopelessLoss = 4;             // one part in so many
// One part in so many that more segments may make up for: now and then, and often.
constexpr int64_t kMadeUpLoss = 8, kNearLoss = 100;
constexpr int64_t kLargeLoss = 20;  // one part in so many that the folded program may lose above that

// A schedule in the chunks of its collective, and the number of moves above which its programs are large.
struct Cut {
  const Schedule& schedule;
  const Collective& collective;
  int64_t large_moves;
};

// What is lowered of a cut. Trees of links stay, and become groups. With a machine model, which has a price
// for the hand-offs between threadblocks that add to one chunk, fan-ins come second. Chains come last, where
// groups lose time.
enum class Variant { kPlain, kFanIns, kChains };

// A program, and its simulated time; absent: it was too large to be simulated in every form.
struct Made {
  Program program;
  std::optional<int64_t> time_ps;
};

// Of every chunk of every transfer.
int64_t NumMoves(const Schedule& schedule) {
  return std::accumulate(schedule.count.begin(), schedule.count.end(), int64_t{0});
}

// Is the folded program good enough that the schedule's own chunks need not be lowered? Many chunks cost much
// to be lowered, and their programs run worse.
bool IsGoodEnough(int64_t folded_ps, int64_t wanted_ps, const Schedule& plain) {
  if (lowering::Keeps(folded_ps, wanted_ps)) return true;
  return NumMoves(plain) > kLargeUnfoldedMoves && folded_ps <= wanted_ps + wanted_ps / kLargeLoss;
}

// Are trees to be lowered as chains, too? Groups may lose time: a group's message goes on only when all of
// its members have room for it.
bool NeedsChains(const Made& with_groups, int64_t wanted_ps) {
  return std::ranges::any_of(with_groups.program.groups, HasSwitch) && with_groups.time_ps &&
         !lowering::Keeps(*with_groups.time_ps, wanted_ps);
}

// Does it cost little to refine the passes of every form?
bool IsSmall(const Program& program) { return lowering::NumInstructions(program) <= kSmallProgram; }

// Are chains so much slower than groups that no form of theirs will be faster?
bool IsHopeless(const Made& chains, const Made& groups) {
  return chains.time_ps && *chains.time_ps > *groups.time_ps + *groups.time_ps / kHopelessLoss;
}

// Is the program slower than a plainer one, which has as many segments as help it, by more than one part in
// so many?
bool IsSlower(const Made& made, const std::optional<Made>& plainer, int64_t part) {
  return plainer && made.time_ps && *made.time_ps > *plainer->time_ps + *plainer->time_ps / part;
}

// Is the program faster than a plainer one? Large programs, which have no time, are never replaced.
bool IsBetter(const Made& made, const std::optional<Made>& plainer) {
  return !plainer || (made.time_ps && lowering::IsFaster(*made.time_ps, *plainer->time_ps));
}

}  // namespace

namespace {

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
  XCCL_ASSIGN_OR_RETURN(TimedProgram made, LowerTimed(schedule, collective, topology, options));
  return std::move(made.program);
}

StatusOr<TimedProgram> LowerTimed(const Schedule& schedule, const Collective& collective,
                                  const Topology& topology, const LowerOptions& options) {
  using namespace lowering;  // the list of passes reads better without it
  const SimulateOptions timing{.size_bytes = options.size_bytes,
                               .model = options.model,
                               .machine = options.machine,
                               .deadline = options.deadline};

  // Symmetry is written out.
  const StatusOr<Schedule> expanded = Expand(schedule, collective, topology, kMostExpanded, options.deadline);
  if (!expanded.ok()) return Annotate(expanded.status(), "lower");
  const Schedule& plain = *expanded;
  // A program is to keep the schedule's time.
  const int64_t wanted_ps =
      options.least_ps ? *options.least_ps : LeastTime(plain, collective, topology, timing);
  // Waves become one chunk. The schedule's own chunks come second, and are lowered where folding loses time.
  const std::optional<Folded> folded = options.fold ? FoldWaves(plain, collective) : std::nullopt;
  std::vector<Cut> cuts;
  if (folded) cuts.push_back({folded->schedule, folded->collective, kLargeMoves});
  cuts.push_back({plain, collective, folded ? kLargeUnfoldedMoves : kLargeMoves});

  std::optional<TimedProgram> result;
  for (const Cut& one : cuts) {
    if (result && NumMoves(one.schedule) > kMostUnfoldedMoves) break;
    const Schedule& own_schedule = one.schedule;
    const Collective& cut = one.collective;
    if (result && (options.deadline() || IsGoodEnough(*result->time_ps, wanted_ps, plain))) break;
    const PassVerifier verify(options.verify_passes, cut, topology);
    const int64_t chunk_bytes = CollectiveSizes(cut, options.size_bytes).LargestChunkBytes();
    std::optional<Made> of_cut;
    FanIns needed;
    for (const Variant variant : {Variant::kPlain, Variant::kFanIns, Variant::kChains}) {
      const bool as_chains = variant == Variant::kChains;
      if (of_cut && options.deadline()) break;
      if (as_chains && !NeedsChains(*of_cut, wanted_ps)) break;
      if (variant == Variant::kFanIns && options.machine == nullptr) continue;
      const StatusOr<Schedule> chains = as_chains ? WithoutTrees(own_schedule, topology) : Schedule();
      if (!chains.ok()) break;
      const Schedule& source = as_chains ? *chains : own_schedule;
      XCCL_RETURN_IF_ERROR(verify.Check(as_chains           ? "chains"
                                        : folded && !result ? "fold"
                                                            : "expand",
                                        source));
      // What several ranks must add up to the same bits is added at once.
      const FanIns fan_ins = FindFanIns(source, cut, topology, variant == Variant::kFanIns);
      if (variant == Variant::kPlain) needed = fan_ins;
      if (variant == Variant::kFanIns && fan_ins == needed) continue;
      // Every path gets a connection, every tree and fan-in a group.
      const Paths paths = ListPaths(source, topology, fan_ins);
      XCCL_RETURN_IF_ERROR(verify.Check(paths));
      if (!options.max_blocks) XCCL_RETURN_IF_ERROR(CheckConnections(paths, topology.num_ranks()));
      // Transfers become moves, which know what feeds them and what follows them at either end.
      const MoveTimes times =
          TimesOfMoves(source, paths, SimulateMoves(source, cut, topology, options.size_bytes));
      const auto split = [&](const MoveTimes* by) {
        return SplitByRank(source, paths, cut, topology.num_ranks(), by);
      };
      XCCL_ASSIGN_OR_RETURN(const Moves moves, split(&times));
      XCCL_RETURN_IF_ERROR(verify.Check(moves));

      const BlockLimits blocks = {
          options.max_blocks.value_or(kMostBlocks),
          options.max_blocks.value_or(options.machine != nullptr ? kDefaultBlocks : kMostBlocks)};
      const auto add_segments = [&](Made& made, bool briefly) -> Status {
        if (!made.time_ps) return OkStatus();
        XCCL_ASSIGN_OR_RETURN(made.time_ps,
                              MoreSegments(cut, topology, moves.moves, timing, blocks, *made.time_ps,
                                           briefly || Keeps(*made.time_ps, wanted_ps), made.program));
        return OkStatus();
      };
      std::optional<Made> of_forms;
      std::optional<Ordered> ordered;
      std::optional<Program> last;  // before segments: one form after another may come out the same
      for (const Form& form : options.form ? std::vector{*options.form}
                                           : FormsFor(source, cut, options.size_bytes,
                                                      std::ssize(moves.moves), one.large_moves)) {
        if (of_forms && options.deadline()) break;
        // One order over all sends and receives.
        if (!ordered || ordered->slots != form.slots) {
          XCCL_ASSIGN_OR_RETURN(ordered,
                                OrderMoves(moves, times, paths.size(), form.slots, chunk_bytes, split));
          XCCL_RETURN_IF_ERROR(verify.Check(*ordered));
        }
        const auto& [asked, in_order, order] = *ordered;
        Program program;
        program.slots = std::max(form.slots.value_or(2), order.slots);
        // Connections get threadblocks and channels.
        const Assignment assignment =
            AssignThreadblocks(in_order.moves, paths, topology.num_ranks(), form.fuse);
        XCCL_RETURN_IF_ERROR(verify.Check(assignment, paths));
        // Receives join the sends that forward their values.
        const Fusion fusion = FuseForwards(in_order.moves, order, assignment, program.slots, form.fuse);
        XCCL_RETURN_IF_ERROR(verify.Check(*ordered, assignment, fusion, program.slots));
        // Values get slots in buffers.
        const Buffers buffers = PlaceBuffers(in_order, fusion, cut, topology.num_ranks());
        XCCL_RETURN_IF_ERROR(verify.Check(in_order, fusion, buffers));
        // Neighbouring chunks share an instruction.
        const Runs runs = MergeRuns(in_order, order, assignment, fusion, buffers, form.merge);
        XCCL_RETURN_IF_ERROR(verify.Check(*ordered, fusion, runs, form.merge));
        // Instructions are written.
        const Places places = WriteInstructions(in_order, order, assignment, fusion, runs, buffers, paths,
                                                cut.Reduces(), program);
        XCCL_RETURN_IF_ERROR(verify.Check("instructions", program, false));
        // Conflicting accesses wait for one another.
        AddDependencies(places, cut, form.pace, program);
        XCCL_RETURN_IF_ERROR(verify.Check("dependencies", program));
        if (last == program) continue;
        last = program;
        // Passes, instances and the protocol are chosen.
        const StatusOr<std::optional<int64_t>> timed =
            SetSegments(form.segments, cut, topology, moves.moves, timing, blocks,
                        of_forms                     ? &of_forms->program
                        : of_cut && !options.machine ? &of_cut->program
                                                     : nullptr,
                        program);
        if (of_forms && timed.status().code() == StatusCode::kLimit && options.deadline()) break;
        XCCL_ASSIGN_OR_RETURN(const std::optional<int64_t> time_ps, timed);
        XCCL_RETURN_IF_ERROR(verify.Check("segments", program));
        Made made{std::move(program), time_ps};
        if (IsSmall(made.program) && !IsSlower(made, of_forms, kMadeUpLoss))
          XCCL_RETURN_IF_ERROR(add_segments(made, IsSlower(made, of_forms, kNearLoss)));
        if (IsBetter(made, of_forms)) of_forms = std::move(made);
        if (as_chains && IsHopeless(*of_forms, *of_cut)) break;
        if (of_forms->time_ps && Keeps(*of_forms->time_ps, wanted_ps)) break;
      }
      // Of large programs the best form alone is refined.
      if (!IsSmall(of_forms->program)) XCCL_RETURN_IF_ERROR(add_segments(*of_forms, false));
      if (!IsBetter(*of_forms, of_cut)) continue;
      of_cut = std::move(of_forms);
      if (!of_cut->time_ps) continue;
      XCCL_ASSIGN_OR_RETURN(of_cut->time_ps, FewerSegments(cut, topology, moves.moves, timing, blocks,
                                                           *of_cut->time_ps, of_cut->program));
    }
    // Large programs are simulated only where two cuts are compared.
    if (folded && !of_cut->time_ps) {
      const StatusOr<Simulation> simulation = SimulateProgram(of_cut->program, cut, topology, timing);
      if (!simulation.ok() && !options.deadline()) return simulation.status();
      if (simulation.ok()) of_cut->time_ps = simulation->time_ps;
    }
    if (result && (!of_cut->time_ps || Keeps(*result->time_ps, *of_cut->time_ps))) break;
    result = TimedProgram{{cut, std::move(of_cut->program)}, of_cut->time_ps};
  }
  return *std::move(result);
}

}  // namespace xccl
