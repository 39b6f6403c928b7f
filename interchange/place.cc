#include "interchange/place.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/version.h"
#include "interchange/place_paths.h"
#include "interchange/schedule_of.h"
#include "ir/analysis/bitwise_same.h"
#include "ir/verify/verify_plan.h"
#include "ir/verify/verify_program.h"
#include "ir/violation.h"

namespace xccl {
namespace {

// True if both schedule and program give all ranks the same bits, false if the schedule does not. Absent,
// which claims nothing, if only the program does not.
std::optional<bool> BitsClaimed(const Plan& plan) {
  if (!IsBitwiseSame(plan.schedule, plan.collective, plan.topology)) return false;
  ProgramRecord record{Traffic(plan.program->collective.num_chunks())};
  VerifyProgram(plan.program->program, plan.program->collective, plan.topology, &record);
  return record.bitwise_same ? std::optional(true) : std::nullopt;
}

// Takes away peers to whom a threadblock sends nothing, or of whom it receives nothing, and connections that
// no threadblock is left with: they need no path, and no schedule has one for them.
void DropSilentPeers(Program& program) {
  std::set<std::tuple<Rank, Rank, int32_t>> used;
  for (int32_t r = 0; r < program.ranks.size(); ++r) {
    const Rank rank(r);
    for (Threadblock& block : program.ranks[rank].threadblocks) {
      const auto any = [&](bool (*does)(Opcode)) {
        return std::ranges::any_of(block.instructions, [&](const Instruction& i) { return does(i.op); });
      };
      if (!any(Sends)) block.send_peer.reset();
      if (!any(Receives)) block.recv_peer.reset();
      if (block.send_peer) used.emplace(rank, *block.send_peer, block.channel);
      if (block.recv_peer) used.emplace(*block.recv_peer, rank, block.channel);
    }
  }
  for (const Group& group : program.groups)
    for (const Rank member : group.members) {
      const Connection branch = BranchOf(group, member);
      used.emplace(branch.src, branch.dst, branch.channel);
    }
  std::erase_if(program.connections, [&](const Connection& connection) {
    return !used.contains({connection.src, connection.dst, connection.channel});
  });
}

}  // namespace

StatusOr<Plan> PlaceOnMachine(const Imported& imported, const Topology& topology,
                              std::vector<std::string>* warnings) {
  LoweredProgram lowered = imported.lowered;
  DropSilentPeers(lowered.program);
  XCCL_ASSIGN_OR_RETURN(const int64_t lost, PlacePaths(lowered.program, lowered.collective, topology));
  if (lost > 0 && warnings != nullptr)
    warnings->push_back(
        fmt::format("the file names {} paths of a machine, which are not all paths of {}: others are chosen",
                    lost, topology.name()));
  XCCL_ASSIGN_OR_RETURN(Schedule schedule, ScheduleOf(lowered));
  Plan plan{topology, lowered.collective, std::move(schedule), std::move(lowered), {}};
  plan.made_by.engine = imported.name.empty() ? imported.format : imported.name;
  plan.made_by.version = kVersion;
  if (imported.max_bytes > 0) plan.made_by.size_bytes = std::min(plan.made_by.size_bytes, imported.max_bytes);
  plan.made_by.size_bytes = std::max(plan.made_by.size_bytes, imported.min_bytes);
  plan.sizes = {imported.min_bytes, imported.max_bytes};
  plan.bitwise_same = BitsClaimed(plan);
  if (const std::vector<Violation> wrong = VerifyPlan(plan); !wrong.empty())
    return BugError(imported.format + ": " + ToString(wrong.front()));
  return plan;
}

}  // namespace xccl
