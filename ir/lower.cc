// The list of passes. One order over all sends and receives is fixed first; everything after it keeps that
// order, so that no later pass can make the program deadlock or read the wrong value.
#include "ir/lower.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

StatusOr<Program> Lower(const Schedule& schedule, const Collective& collective, const Topology& topology,
                        const LowerOptions& options) {
  using namespace lowering;  // the list of passes reads better without it
  if (!schedule.symmetry.empty()) {
    const StatusOr<Schedule> plain = Expand(schedule, collective, topology, kMostLoweredTransfers);
    if (!plain.ok()) return Annotate(plain.status(), "lower");
    return Lower(*plain, collective, topology, options);
  }
  if (options.slots < 1 || options.slots > kMaxSlots)
    return InvalidInput(
        fmt::format("lower: {} slots a connection; expected 1..{}", options.slots, kMaxSlots));
  if (HasTrees(schedule, topology)) {
    XCCL_ASSIGN_OR_RETURN(const Schedule chains, WithoutTrees(schedule, topology));
    return Lower(chains, collective, topology, options);
  }
  XCCL_ASSIGN_OR_RETURN(const Moves moves, SplitByRank(schedule, collective, topology));
  const MoveTimes times = SimulateMoves(schedule, collective, topology, options.size_bytes);
  const Order order = OrderMoves(moves.moves, schedule.paths.size(), options.slots, times);

  Program program;
  program.slots = std::max(options.slots, order.slots);
  const Assignment assignment =
      AssignThreadblocks(moves.moves, topology.num_ranks(), schedule.paths.size(), options.fuse);
  const Fusion fusion = FuseForwards(moves.moves, order, assignment, program.slots, options.fuse);
  const Buffers buffers(moves, fusion, collective, topology.num_ranks());
  const Runs runs = MergeRuns(moves, order, assignment, fusion, buffers, options.merge);
  const Places places = WriteInstructions(moves, order, assignment, fusion, runs, buffers, schedule.paths,
                                          collective.Reduces(), program);
  AddDependencies(places, collective, program);
  program.in_place = HasInPlaceForm(collective);
  XCCL_RETURN_IF_ERROR(ChooseSegments(collective, topology, options.size_bytes, program));
  return program;
}

}  // namespace xccl
