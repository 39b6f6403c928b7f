// The part of DeviceProgram that serves its program's groups.
#include "runtime/cuda/device_program.h"
#include "runtime/cuda/device_program_state.h"

namespace xccl::cuda {

Status DeviceProgram::ConnectGroups() {
  if (program_.groups.empty()) return OkStatus();
  std::vector<SwitchRank> local;
  for (size_t i = 0; i < ranks_.size(); ++i)
    local.push_back({ranks_[i].rank, ranks_[i].gpu, &states_[i]->arena, &layouts_[ranks_[i].rank]});
  XCCL_ASSIGN_OR_RETURN(switches_, ConnectSwitches(TeamsOf(program_, shape_), local, program_.ranks.size(),
                                                   options_.multicast, exchange_));
  return OkStatus();
}

Status DeviceProgram::WriteGroups(size_t local, std::span<const DevicePointer> arenas) {
  const Rank rank = ranks_[local].rank;
  const ArenaLayout& layout = layouts_[rank];
  if (layout.groups.empty()) return OkStatus();
  std::vector<DevicePointer> multicast;
  for (const std::optional<MulticastMemory>& memory : switches_.teams)
    multicast.push_back(memory ? memory->address() : 0);
  const GroupTables tables = GroupTablesOf(program_, layouts_, shape_, rank, arenas, multicast);
  const DevicePointer arena = arenas[rank.index()];
  for (size_t g = 0; g < tables.members.size(); ++g)
    XCCL_RETURN_IF_ERROR(ConstantTables::Write(
        ranks_[local].gpu, arena + static_cast<uint64_t>(layout.groups[g].members), tables.members[g].data(),
        tables.members[g].size() * sizeof(device::GroupMember)));
  return ConstantTables::Write(ranks_[local].gpu, arena + static_cast<uint64_t>(layout.group_connections),
                               tables.connections.data(),
                               tables.connections.size() * sizeof(device::GroupConnection));
}

}  // namespace xccl::cuda
