// The list of passes. One order over all sends and receives is fixed first; everything after it keeps that
// order, so that no later pass can make the program deadlock or read the wrong value.
#include "ir/lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "ir/lower/buffers.h"
#include "ir/lower/chains.h"
#include "ir/lower/dependencies.h"
#include "ir/lower/fold.h"
#include "ir/lower/fuse.h"
#include "ir/lower/instructions.h"
#include "ir/lower/merge.h"
#include "ir/lower/moves.h"
#include "ir/lower/order.h"
#include "ir/lower/segments.h"
#include "ir/lower/threadblocks.h"
#include "ir/lower/ways.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"
#include "ir/translated.h"

namespace xccl {
namespace {

bool HasInPlaceForm(const Collective& collective) {
  return std::all_of(collective.ranks().begin(), collective.ranks().end(),
                     [&](Rank r) { return collective.InPlaceOf(r).has_value(); });
}

// What options leave open. Plainest first: fewer slots are less memory, a receive that is fused with a send
// reads its value once less, and pacing makes threadblocks wait for one another. Absent slots: as many as the
// schedule has under way.
struct Form {
  std::optional<int32_t> slots;
  bool fuse, pace;
  bool operator==(const Form&) const = default;
};
constexpr Form kFaithful = {std::nullopt, false, true};  // does everything when the schedule does it
constexpr Form kForms[] = {{2, true, false}, {8, true, false}, {8, true, true},
                           {8, false, true}, {{}, true, true}, kFaithful};
constexpr Form kFormsOfMany[] = {{8, true, true}, {{}, true, true}, kFaithful};
constexpr Form kOfLarge = {8, true, true};   // of programs that are too large to be simulated
constexpr int64_t kMostInFlight = 16 << 20;  // bytes of a connection, whatever the schedule has under way
constexpr int64_t kLeastInFlight = 8;
constexpr int32_t kSlotsOfSteps = 32;  // of the faithful form where moves are ordered step by step
constexpr int64_t kManyMoves = 50'000;
constexpr int64_t kLargeMoves = 500'000;
constexpr int64_t kFewSegments = 4;  // of a chunk, that a schedule can do without
// A form is good that is slower than the schedule by at most one part in so many; a less plain one must be
// faster by more than that.
constexpr int64_t kAllowedLoss = 50;
constexpr int64_t kLargeLoss = 20;  // the same of a folded form in place of one of more moves than this:
constexpr int64_t kMostUnfolded = 100'000;

bool Keeps(int64_t time_ps, int64_t wanted_ps) { return time_ps <= wanted_ps + wanted_ps / kAllowedLoss; }

Form Fixed(Form form, const LowerOptions& options) {
  return {options.slots ? options.slots : form.slots, options.fuse.value_or(form.fuse),
          options.pace.value_or(form.pace)};
}

// A schedule and what its lowering starts from.
struct Source {
  const Schedule& schedule;
  const Collective& collective;
  const Topology& topology;
  lowering::Ways ways;
  MoveTimes times;
  lowering::Moves moves;  // split with times
  int64_t chunk_bytes;    // of the largest
  int64_t wanted_ps;      // the time that the program is to keep
};

// The passes, in order; all but the last.
Program LowerInOrder(const Form& form, const Source& source, const lowering::Moves& moves,
                     const lowering::Order& order, int32_t merge) {
  using namespace lowering;  // the list of passes reads better without it
  const Collective& collective = source.collective;
  const int32_t num_ranks = source.topology.num_ranks();
  Program program;
  program.slots = std::max(form.slots.value_or(2), order.slots);
  const Assignment assignment = AssignThreadblocks(moves.moves, source.ways, num_ranks, form.fuse);
  const Fusion fusion = FuseForwards(moves.moves, order, assignment, program.slots, form.fuse);
  const Buffers buffers(moves, fusion, collective, num_ranks);
  const Runs runs = MergeRuns(moves, order, assignment, fusion, buffers, merge);
  const Places places = WriteInstructions(moves, order, assignment, fusion, runs, buffers, source.ways,
                                          collective.Reduces(), program);
  AddDependencies(places, collective, form.pace, program);
  program.in_place = HasInPlaceForm(collective);
  return program;
}

int32_t SlotsInFlight(const Source& source) {
  const int64_t slots = kMostInFlight / std::max<int64_t>(1, source.chunk_bytes);
  return static_cast<int32_t>(std::clamp<int64_t>(slots, kLeastInFlight, kMaxSlots));
}

StatusOr<Program> LowerAs(const Form& form, const Source& source, int32_t merge) {
  const int32_t connections = source.ways.size();
  const auto split = [&](const MoveTimes* times) {
    return lowering::SplitByRank(source.schedule, source.ways, source.collective, source.topology, times);
  };
  const std::vector<lowering::Move>& moves = source.moves.moves;
  if (const std::optional<lowering::Order> order = lowering::OrderByTime(
          moves, connections, form.slots.value_or(SlotsInFlight(source)), source.times)) {
    if (!source.collective.Reduces()) return LowerInOrder(form, source, source.moves, *order, merge);
    MoveTimes places;
    places.arrival_ps.resize(moves.size());
    for (size_t m = 0; m < moves.size(); ++m)
      places.arrival_ps[static_cast<size_t>(moves[m].number)] = order->recv_place[m];
    XCCL_ASSIGN_OR_RETURN(const lowering::Moves ordered, split(&places));
    return LowerInOrder(form, source, ordered, *order, merge);
  }
  XCCL_ASSIGN_OR_RETURN(const lowering::Moves by_step, split(nullptr));
  const lowering::Order order =
      lowering::OrderByStep(by_step.moves, connections, form.slots.value_or(kSlotsOfSteps));
  return LowerInOrder(form, source, by_step, order, merge);
}

int32_t MostBlocks(const LowerOptions& options) { return options.max_blocks.value_or(lowering::kMostBlocks); }

SimulateOptions Timing(const LowerOptions& options) {
  return {.size_bytes = options.size_bytes, .model = options.model, .machine = options.machine};
}

struct Timed {
  Program program;
  std::optional<int64_t> time_ps;  // absent: too large to be simulated in every form
};

// The first form that keeps the time of the schedule, else the plainest about as fast as any.
StatusOr<Timed> LowerBest(std::span<const Form> forms, const Source& source, const LowerOptions& options) {
  std::optional<Program> best;
  int64_t best_ps = 0;
  std::vector<Form> tried;
  std::optional<Program> last;  // uncut: one form after another may come out the same
  for (const Form& open : forms) {
    const Form form = Fixed(open, options);
    if (std::ranges::find(tried, form) != tried.end()) continue;
    tried.push_back(form);
    XCCL_ASSIGN_OR_RETURN(Program program, LowerAs(form, source, options.merge));
    if (last && program == *last) continue;
    last = program;
    XCCL_ASSIGN_OR_RETURN(const int64_t time_ps,
                          lowering::ChooseSegments(source.collective, source.topology, source.moves.moves,
                                                   Timing(options), MostBlocks(options), program));
    if (!best || time_ps < best_ps - best_ps / kAllowedLoss) {
      best = std::move(program);
      best_ps = time_ps;
    }
    if (Keeps(best_ps, source.wanted_ps)) break;
  }
  return Timed{*std::move(best), best_ps};
}

// What is fast with its chunks uncut keeps its time in the faithful form, in one pass; else a middle way.
StatusOr<Timed> LowerLarge(const Source& source, const LowerOptions& options) {
  const bool uncut =
      kFewSegments * DefaultSegmentBytes(source.schedule, source.collective, options.size_bytes) >=
      source.chunk_bytes;
  XCCL_ASSIGN_OR_RETURN(Program program,
                        LowerAs(Fixed(uncut ? kFaithful : kOfLarge, options), source, options.merge));
  if (!uncut)
    XCCL_RETURN_IF_ERROR(lowering::SetMiddleSegments(source.collective, source.moves.moves,
                                                     options.size_bytes, MostBlocks(options), program));
  return Timed{std::move(program), std::nullopt};
}

int64_t TimeOf(const Schedule& schedule, const Collective& collective, const Topology& topology,
               const LowerOptions& options) {
  return Simulate(schedule, collective, topology, {.size_bytes = options.size_bytes, .model = options.model})
      .time_ps;
}

// Of a schedule as Plain makes it. `wanted_ps` is not asked for where programs are too large to be timed.
template <typename WantedPs>
StatusOr<Timed> LowerPlain(const Schedule& schedule, const Collective& collective, const Topology& topology,
                           const LowerOptions& options, int64_t large_moves, WantedPs wanted_ps) {
  if (options.slots && (*options.slots < 1 || *options.slots > kMaxSlots))
    return InvalidInput(
        fmt::format("lower: {} slots a connection; expected 1..{}", *options.slots, kMaxSlots));
  Source source{schedule, collective, topology, lowering::WaysOf(schedule, topology), {}, {}, 0, 0};
  source.times = lowering::TimesOfMoves(schedule, source.ways,
                                        SimulateMoves(schedule, collective, topology, options.size_bytes));
  XCCL_ASSIGN_OR_RETURN(source.moves,
                        lowering::SplitByRank(schedule, source.ways, collective, topology, &source.times));
  const CollectiveSizes sizes(collective, options.size_bytes);
  for (int32_t c = 0; c < collective.num_chunks(); ++c)
    source.chunk_bytes = std::max(source.chunk_bytes, sizes.ChunkBytes(ChunkId(c)));
  const int64_t num_moves = static_cast<int64_t>(source.moves.moves.size());
  if (num_moves > large_moves) return LowerLarge(source, options);
  source.wanted_ps = wanted_ps();
  return num_moves > kManyMoves ? LowerBest(kFormsOfMany, source, options)
                                : LowerBest(kForms, source, options);
}

// Trees as groups, and as chains where groups do not keep the time: a group's message goes on when all of its
// members have room for it.
template <typename WantedPs>
StatusOr<Timed> LowerTrees(const Schedule& schedule, const Collective& collective, const Topology& topology,
                           const LowerOptions& options, int64_t large_moves, WantedPs wanted_ps) {
  XCCL_ASSIGN_OR_RETURN(Timed made,
                        LowerPlain(schedule, collective, topology, options, large_moves, wanted_ps));
  if (made.program.groups.empty() || !made.time_ps || Keeps(*made.time_ps, wanted_ps())) return made;
  const StatusOr<Schedule> chains = lowering::WithoutTrees(schedule, topology);
  if (!chains.ok()) return made;
  XCCL_ASSIGN_OR_RETURN(Timed apart,
                        LowerPlain(*chains, collective, topology, options, large_moves, wanted_ps));
  const bool faster = apart.time_ps && *apart.time_ps < *made.time_ps - *made.time_ps / kAllowedLoss;
  return faster ? std::move(apart) : std::move(made);
}

// Without symmetry; and without trees where they are not wanted.
StatusOr<Schedule> Plain(const Schedule& schedule, const Collective& collective, const Topology& topology,
                         const LowerOptions& options) {
  StatusOr<Schedule> plain = Expand(schedule, collective, topology, kMostLoweredTransfers);
  if (!plain.ok()) return Annotate(plain.status(), "lower");
  if (!options.groups && lowering::HasTrees(*plain, topology))
    return lowering::WithoutTrees(*plain, topology);
  return plain;
}

}  // namespace

StatusOr<Program> Lower(const Schedule& schedule, const Collective& collective, const Topology& topology,
                        const LowerOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const Schedule plain, Plain(schedule, collective, topology, options));
  XCCL_ASSIGN_OR_RETURN(Timed made, LowerTrees(plain, collective, topology, options, kLargeMoves,
                                               [&] { return TimeOf(plain, collective, topology, options); }));
  return std::move(made.program);
}

StatusOr<LoweredProgram> LowerFolded(const Schedule& schedule, const Collective& collective,
                                     const Topology& topology, const LowerOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const Schedule plain, Plain(schedule, collective, topology, options));
  std::optional<int64_t> wanted_ps;
  const auto wanted = [&] {
    if (!wanted_ps) wanted_ps = TimeOf(plain, collective, topology, options);
    return *wanted_ps;
  };
  const auto lower = [&](const Schedule& of, const Collective& cut, int64_t large_moves) {
    return LowerTrees(of, cut, topology, options, large_moves, wanted);
  };
  const std::optional<lowering::Folded> folded = lowering::FoldWaves(plain, collective);
  if (!folded) {
    XCCL_ASSIGN_OR_RETURN(Timed whole, lower(plain, collective, kLargeMoves));
    return LoweredProgram{collective, std::move(whole.program)};
  }
  const auto time_of = [&](const Timed& made, const Collective& cut) -> StatusOr<int64_t> {
    if (made.time_ps) return *made.time_ps;
    XCCL_ASSIGN_OR_RETURN(const Simulation simulation,
                          SimulateProgram(made.program, cut, topology, Timing(options)));
    return simulation.time_ps;
  };
  XCCL_ASSIGN_OR_RETURN(Timed few, lower(folded->schedule, folded->collective, kLargeMoves));
  XCCL_ASSIGN_OR_RETURN(const int64_t few_ps, time_of(few, folded->collective));
  // What is large costs much to be tried, and runs worse.
  const int64_t moves = std::accumulate(plain.count.begin(), plain.count.end(), int64_t{0});
  bool takes_few =
      Keeps(few_ps, wanted()) || (moves > kMostUnfolded && few_ps <= wanted() + wanted() / kLargeLoss);
  std::optional<Timed> many;
  if (!takes_few) {
    XCCL_ASSIGN_OR_RETURN(many, lower(plain, collective, kMostUnfolded));
    XCCL_ASSIGN_OR_RETURN(const int64_t many_ps, time_of(*many, collective));
    takes_few = Keeps(few_ps, many_ps);
  }
  if (takes_few) return LoweredProgram{folded->collective, std::move(few.program)};
  return LoweredProgram{collective, std::move(many->program)};
}

}  // namespace xccl
