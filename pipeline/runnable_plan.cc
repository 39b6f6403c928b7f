#include "pipeline/runnable_plan.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "base/memory.h"
#include "ir/lower/lower_ranks.h"
#include "ir/translated.h"
#include "ir/verify/read_plan.h"
#include "ir/verify/verify_program.h"

namespace xccl {
namespace {

// Bytes of a connection in an outline: its ends, about five links, and the memory that holds the list.
constexpr double kBytesOfConnection = 120;
// Bytes of a message in a program: two instructions with their waits, and the passes' tables of both.
constexpr double kBytesOfMessage = 400;

StatusOr<RankLowering> Lowering(const std::string& file, const Plan& plan) {
  if (plan.schedule.symmetry.empty())
    return InvalidInput(file +
                        ": no program in the plan, and its schedule is not compressed; expected one of "
                        "the two; hint: xccl-synth plan ... --lower -o FILE writes a program");
  StatusOr<RankLowering> lowering =
      RankLowering::Create(plan.schedule, plan.collective, plan.topology, plan.made_by.size_bytes);
  if (!lowering.ok()) return Annotate(lowering.status(), file + ": no program in the plan");
  return lowering;
}

// Returns kLimit if the program of all ranks is too large for one process.
Status CheckAllRanks(const std::string& file, const Plan& plan, const RankLowering& lowering) {
  const int64_t messages = lowering.num_messages();
  if (messages > kMostTransfers)
    return LimitReached(fmt::format(
        "{}: no program in the plan, and one of all {} ranks has {} messages; expected at most {} "
        "in one process; hint: emit --to program --rank R, or run with a process for each rank",
        file, plan.topology.num_ranks(), messages, kMostTransfers));
  return CheckMemory(file, fmt::format("a program of {} messages", messages),
                     kBytesOfMessage * static_cast<double>(messages));
}

// Removes the threadblocks and connections of all ranks but one.
void KeepRank(Rank rank, Program& program) {
  Program part = program;
  part.dependencies.clear();
  for (Rank r(0); r.value < part.ranks.size(); ++r.value)
    if (r != rank) part.ranks[r] = RankProgram();
  for (Threadblock& block : part.ranks[rank].threadblocks) {
    for (Instruction& instruction : block.instructions) {
      const auto first = program.dependencies.begin() + instruction.dep_first;
      instruction.dep_first = static_cast<int32_t>(part.dependencies.size());
      part.dependencies.insert(part.dependencies.end(), first, first + instruction.dep_count);
    }
  }
  std::erase_if(part.connections, [&](const Connection& c) { return c.src != rank && c.dst != rank; });
  program = std::move(part);
}

}  // namespace

StatusOr<Plan> ReadRunnablePlan(const std::string& file, std::optional<Rank> own) {
  XCCL_ASSIGN_OR_RETURN(Plan plan, ReadPlan(file));
  if (plan.program) return plan;
  XCCL_ASSIGN_OR_RETURN(const RankLowering lowering, Lowering(file, plan));
  if (own && own->value < plan.topology.num_ranks()) {
    XCCL_RETURN_IF_ERROR(
        CheckMemory(file, fmt::format("the connections of {} ranks", plan.topology.num_ranks()),
                    kBytesOfConnection * lowering.num_classes() * plan.topology.num_ranks()));
    const Rank only[] = {*own};
    plan.program = LoweredProgram{plan.collective, lowering.ProgramOf(only, true)};
    return plan;
  }
  XCCL_RETURN_IF_ERROR(CheckAllRanks(file, plan, lowering));
  plan.program = LoweredProgram{plan.collective, lowering.ProgramOf(AllRanks(plan.topology.num_ranks()))};
  XCCL_RETURN_IF_ERROR(
      Annotate(ToStatus(VerifyProgram(plan.program->program, plan.collective, plan.topology)), file));
  return plan;
}

StatusOr<Plan> ReadPlanOfRank(const std::string& file, Rank rank) {
  XCCL_ASSIGN_OR_RETURN(Plan plan, ReadPlan(file));
  if (rank.value < 0 || rank.value >= plan.topology.num_ranks())
    return InvalidInput(
        fmt::format("{}: no rank {}; ranks are 0..{}", file, rank.value, plan.topology.num_ranks() - 1));
  if (plan.program) {
    KeepRank(rank, plan.program->program);
    return plan;
  }
  XCCL_ASSIGN_OR_RETURN(const RankLowering lowering, Lowering(file, plan));
  const Rank only[] = {rank};
  plan.program = LoweredProgram{plan.collective, lowering.ProgramOf(only)};
  return plan;
}

}  // namespace xccl
