// The order of moves is fixed early, and every later pass keeps it. No pass can therefore make the program
// deadlock or read a wrong value.
#include "ir/lower/lower_once.h"

#include <algorithm>

#include "ir/lower/buffers.h"
#include "ir/lower/dependencies.h"
#include "ir/lower/fan_ins.h"
#include "ir/lower/fuse.h"
#include "ir/lower/instructions.h"
#include "ir/lower/merge.h"
#include "ir/lower/threadblocks.h"
#include "ir/lower/verify_passes.h"
#include "ir/sizes.h"

namespace xccl::lowering {

StatusOr<SplitSchedule> SplitOnce(const ChunkedSchedule& source, const OnceOptions& options) {
  const auto& [schedule, collective, topology] = source;
  const PassVerifier verify(options.verify_passes, collective, topology);
  SplitSchedule split;
  // Additions that several ranks must do in one order, or all additions, become fan-ins.
  const FanIns fan_ins = FindFanIns(schedule, collective, topology, options.all_fan_ins);
  // Every path gets a connection, every tree and fan-in a group.
  split.paths = ListPaths(schedule, topology, fan_ins);
  XCCL_RETURN_IF_ERROR(verify.Check(split.paths));
  if (options.limit_connections) XCCL_RETURN_IF_ERROR(CheckConnections(split.paths, topology.num_ranks()));
  // Transfers become moves, which know what feeds them and what follows them at either end.
  split.times =
      TimesOfMoves(schedule, split.paths, SimulateMoves(schedule, collective, topology, options.size_bytes));
  XCCL_ASSIGN_OR_RETURN(split.moves,
                        SplitByRank(schedule, split.paths, collective, topology.num_ranks(), &split.times));
  XCCL_RETURN_IF_ERROR(verify.Check(split.moves));
  return split;
}

StatusOr<Program> LowerOnce(const ChunkedSchedule& source, const OnceOptions& options,
                            const SplitSchedule& split, const Form& form, std::optional<Ordered>& ordered) {
  const Collective& collective = source.collective;
  const Paths& paths = split.paths;
  const int32_t num_ranks = source.topology.num_ranks();
  const PassVerifier verify(options.verify_passes, collective, source.topology);
  // All sends and receives of all ranks get one order. Forms with the same number of slots share the order.
  if (!ordered || ordered->slots != form.slots) {
    XCCL_ASSIGN_OR_RETURN(
        ordered, OrderMoves(split.moves, split.times, paths.size(), form.slots,
                            CollectiveSizes(collective, options.size_bytes).LargestChunkBytes(),
                            [&](const MoveTimes* times) {
                              return SplitByRank(source.schedule, paths, collective, num_ranks, times);
                            }));
    XCCL_RETURN_IF_ERROR(verify.Check(*ordered));
  }
  const Moves& moves = ordered->moves;
  const Order& order = ordered->order;
  Program program;
  program.slots = std::max(form.slots.value_or(program.slots), order.slots);
  // Connections get threadblocks and channels.
  const Assignment assignment = AssignThreadblocks(moves.moves, paths, num_ranks, form.fuse);
  XCCL_RETURN_IF_ERROR(verify.Check(assignment, paths));
  // Receives join the sends that forward their values.
  const Fusion fusion = FuseForwards(moves.moves, order, assignment, program.slots, form.fuse);
  XCCL_RETURN_IF_ERROR(verify.Check(*ordered, assignment, fusion, program.slots));
  // Values get slots in buffers.
  const Buffers buffers = PlaceBuffers(moves, fusion, collective, num_ranks);
  XCCL_RETURN_IF_ERROR(verify.Check(moves, fusion, buffers));
  // Neighbouring chunks share an instruction.
  const Runs runs = MergeRuns(moves, order, assignment, fusion, buffers, form.merge);
  XCCL_RETURN_IF_ERROR(verify.Check(*ordered, fusion, runs, form.merge));
  // Instructions are written.
  const Places places = WriteInstructions(moves, order, assignment, fusion, runs, buffers, paths,
                                          collective.Reduces(), program);
  XCCL_RETURN_IF_ERROR(verify.Check("instructions", program, false));
  // Conflicting accesses wait for one another.
  AddDependencies(places, collective, form.pace, program);
  XCCL_RETURN_IF_ERROR(verify.Check("dependencies", program));
  return program;
}

}  // namespace xccl::lowering
