// The list of passes. One order over all sends and receives is fixed first; everything after it keeps that
// order, so that no later pass can make the program deadlock or read the wrong value.
#include "ir/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/lowering/buffers.h"
#include "ir/lowering/chains.h"
#include "ir/lowering/dependencies.h"
#include "ir/lowering/fuse.h"
#include "ir/lowering/instructions.h"
#include "ir/lowering/merge.h"
#include "ir/lowering/moves.h"
#include "ir/lowering/order.h"
#include "ir/lowering/segments.h"
#include "ir/lowering/threadblocks.h"
#include "ir/simulate.h"
#include "ir/translated.h"

namespace xccl {
namespace {

bool HasInPlaceForm(const Collective& collective) {
  return std::all_of(collective.ranks().begin(), collective.ranks().end(),
                     [&](Rank r) { return collective.InPlaceOf(r).has_value(); });
}

// What options leave open. Plainest first: fewer slots are less memory, a receive that is fused with a send
// reads its value once less, and pacing makes threadblocks wait for one another.
struct Form {
  int32_t slots;
  bool fuse, pace;
  bool operator==(const Form&) const = default;
};
constexpr Form kForms[] = {{2, true, false}, {8, true, false}, {8, true, true},
                           {8, false, true}, {32, true, true}, {32, false, true}};
constexpr Form kOfLarge = {8, true, true};  // of programs that are too large to be simulated
constexpr int64_t kLargeMoves = 500'000;    // surely too large
// A form is good that is slower than the schedule by at most one part in so many; a less plain one must be
// faster by more than that.
constexpr int64_t kAllowedLoss = 50;

Form Fixed(Form form, const LowerOptions& options) {
  return {options.slots.value_or(form.slots), options.fuse.value_or(form.fuse),
          options.pace.value_or(form.pace)};
}

// A schedule and what its lowering starts from.
struct Source {
  const Schedule& schedule;
  const Collective& collective;
  const Topology& topology;
  MoveTimes times;
  lowering::Moves moves;  // split with times
};

// The passes, in order; all but the last.
Program LowerInOrder(const Form& form, const Source& source, const lowering::Moves& moves,
                     const lowering::Order& order, int32_t merge) {
  using namespace lowering;  // the list of passes reads better without it
  const Schedule& schedule = source.schedule;
  const Collective& collective = source.collective;
  const int32_t num_ranks = source.topology.num_ranks();
  Program program;
  program.slots = std::max(form.slots, order.slots);
  const Assignment assignment = AssignThreadblocks(moves.moves, num_ranks, schedule.paths.size(), form.fuse);
  const Fusion fusion = FuseForwards(moves.moves, order, assignment, program.slots, form.fuse);
  const Buffers buffers(moves, fusion, collective, num_ranks);
  const Runs runs = MergeRuns(moves, order, assignment, fusion, buffers, merge);
  const Places places = WriteInstructions(moves, order, assignment, fusion, runs, buffers, schedule.paths,
                                          collective.Reduces(), program);
  AddDependencies(places, collective, form.pace, program);
  program.in_place = HasInPlaceForm(collective);
  return program;
}

StatusOr<Program> LowerAs(const Form& form, const Source& source, int32_t merge) {
  const int32_t connections = source.schedule.paths.size();
  if (const std::optional<lowering::Order> order =
          lowering::OrderByTime(source.moves.moves, connections, form.slots, source.times))
    return LowerInOrder(form, source, source.moves, *order, merge);
  XCCL_ASSIGN_OR_RETURN(const lowering::Moves moves,
                        lowering::SplitByRank(source.schedule, source.collective, source.topology, nullptr));
  return LowerInOrder(form, source, moves, lowering::OrderByStep(moves.moves, connections, form.slots),
                      merge);
}

}  // namespace

StatusOr<Program> Lower(const Schedule& schedule, const Collective& collective, const Topology& topology,
                        const LowerOptions& options) {
  if (!schedule.symmetry.empty()) {
    const StatusOr<Schedule> plain = Expand(schedule, collective, topology, kMostLoweredTransfers);
    if (!plain.ok()) return Annotate(plain.status(), "lower");
    return Lower(*plain, collective, topology, options);
  }
  if (options.slots && (*options.slots < 1 || *options.slots > kMaxSlots))
    return InvalidInput(
        fmt::format("lower: {} slots a connection; expected 1..{}", *options.slots, kMaxSlots));
  if (lowering::HasTrees(schedule, topology)) {
    XCCL_ASSIGN_OR_RETURN(const Schedule chains, lowering::WithoutTrees(schedule, topology));
    return Lower(chains, collective, topology, options);
  }
  Source source{
      schedule, collective, topology, SimulateMoves(schedule, collective, topology, options.size_bytes), {}};
  XCCL_ASSIGN_OR_RETURN(source.moves, lowering::SplitByRank(schedule, collective, topology, &source.times));
  const std::vector<lowering::Move>& moves = source.moves.moves;
  const auto choose_segments = [&](Program& program) {
    return lowering::ChooseSegments(collective, topology, moves, options.size_bytes, program);
  };

  // The first form that keeps the time of the schedule, else the plainest about as fast as any.
  std::optional<Program> best;
  int64_t best_ps = 0, wanted_ps = 0;
  std::vector<Form> tried;
  for (const Form& open : kForms) {
    const Form form = Fixed(open, options);
    if (std::find(tried.begin(), tried.end(), form) != tried.end()) continue;
    tried.push_back(form);
    std::optional<int64_t> time_ps;
    Program program;
    if (static_cast<int64_t>(moves.size()) <= kLargeMoves) {
      XCCL_ASSIGN_OR_RETURN(program, LowerAs(form, source, options.merge));
      XCCL_ASSIGN_OR_RETURN(time_ps, choose_segments(program));
    }
    if (!time_ps) {
      XCCL_ASSIGN_OR_RETURN(program, LowerAs(Fixed(kOfLarge, options), source, options.merge));
      XCCL_RETURN_IF_ERROR(choose_segments(program).status());
      return program;
    }
    if (!best)
      wanted_ps = Simulate(schedule, collective, topology, {.size_bytes = options.size_bytes}).time_ps;
    if (!best || *time_ps < best_ps - best_ps / kAllowedLoss) {
      best = std::move(program);
      best_ps = *time_ps;
    }
    if (best_ps <= wanted_ps + wanted_ps / kAllowedLoss) break;
  }
  return *std::move(best);
}

}  // namespace xccl
