// Connecting has these stages: compile, agree on the number of instances, choose slots that fit the memory,
// make the arenas, exchange their handles, map the peers', write the tables. There is one exchange each for
// the instances and for the handles. A failure in between is a failure of the exchange on the other side,
// within its time limit.
#include "runtime/cuda/device_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "ir/kernel/kernel_sizes.h"
#include "runtime/cuda/device_program_state.h"
#include "runtime/cuda/line_order.h"
#include "runtime/cuda/registry.h"

namespace xccl::cuda {
DeviceProgram::DeviceProgram(std::string name, const Program& program, const Collective& collective,
                             KernelImages images, std::vector<LocalRank> ranks, Exchange exchange,
                             const DeviceProgramOptions& options)
    : name_(std::move(name)),
      program_(program),
      collective_(collective),
      images_(std::move(images)),
      ranks_(std::move(ranks)),
      exchange_(std::move(exchange)),
      options_(options) {}

StatusOr<std::unique_ptr<DeviceProgram>> DeviceProgram::Connect(
    std::string name, const Program& program, const Collective& collective, KernelImages images,
    std::vector<LocalRank> ranks, const Exchange& exchange, const DeviceCall& first,
    const DeviceProgramOptions& options, std::shared_ptr<CommunicatorShare> share) {
  XCCL_CHECK(!ranks.empty() && (options.buffers == nullptr || ranks.size() == 1));
  std::unique_ptr<DeviceProgram> made(new DeviceProgram(
      std::move(name), program, collective, std::move(images), std::move(ranks), exchange, options));
  XCCL_CHECK(options.proxy == nullptr || made->ranks_.size() == 1);
  made->one_process_ = exchange.parties == 1 && options.proxy == nullptr;
  made->share_ = std::move(share);
  const Status connected = made->ConnectRanks(first);
  if (connected.ok()) return made;
  // Its end waits for the ranks of other hosts.
  if (options.proxy != nullptr) options.proxy->hosts().Tell(connected, made->ranks_[0].rank);
  return connected;
}

Status DeviceProgram::ConnectRanks(const DeviceCall& first) {
  XCCL_ASSIGN_OR_RETURN(record_, PinnedMemory::Create(ranks_[0].gpu, kAbortAt + sizeof(uint32_t)));
  new (record_.host()) device::ErrorRecord();
  for (const LocalRank& local : ranks_) {
    std::unique_ptr<DeviceState>& device = devices_[local.gpu->id()];
    if (device == nullptr) {
      device = std::make_unique<DeviceState>(local.gpu);
      device->first_local = states_.size();
    }
    if (options_.one_launch) {
      const Rank first_rank = ranks_[device->first_local].rank;
      XCCL_CHECK(device->first_local + static_cast<size_t>(device->ranks) == states_.size() &&
                 local.rank.value == first_rank.value + device->ranks);
    }
    auto state = std::make_unique<RankState>();
    state->device = device.get();
    state->index = device->ranks++;
    XCCL_ASSIGN_OR_RETURN(state->done, CreateEvent(local.gpu));
    states_.push_back(std::move(state));
  }
  XCCL_RETURN_IF_ERROR(CheckLineOrder(name_, program_, ranks_, exchange_));
  XCCL_RETURN_IF_ERROR(ChooseKernel(first));
  AllowDirect();
  XCCL_RETURN_IF_ERROR(LoadKernels(first));
  XCCL_RETURN_IF_ERROR(AgreeOnInstances(devices_.begin()->second->kernels.begin()->second));
  ArenaOptions arena = options_.arena;
  if (options_.proxy != nullptr) arena.host_of = options_.proxy->hosts().host_of;
  // Elements are 1 to 8 bytes large, and slices whole elements.
  for (const int32_t element_bytes : {1, 8})
    if (options_.most_bytes)
      arena.largest_message =
          std::max(arena.largest_message,
                   LargestMessageBytes(program_, form_,
                                       CollectiveSizes(collective_, *options_.most_bytes, element_bytes),
                                       program_.protocol));
  XCCL_ASSIGN_OR_RETURN(shape_, ChooseShape(program_, form_.blocks_per_rank, shape_.instances, arena, name_));
  layouts_ = LayoutArenas(program_, shape_);
  XCCL_RETURN_IF_ERROR(LoadKernels(first));  // reserves what they need
  XCCL_RETURN_IF_ERROR(MakeArenas());
  XCCL_RETURN_IF_ERROR(ConnectHosts());
  return MapPeers();
}

// All ranks take the most instances that the program has, the budget allows and every device runs at once.
Status DeviceProgram::AgreeOnInstances(const Kernel& kernel) {
  const int32_t blocks = std::max(1, form_.blocks_per_rank);
  int64_t instances =
      interpreted_ ? program_.instances : std::min(program_.instances, kernel.info().instances);
  if (options_.max_ctas && *options_.max_ctas < blocks)
    return InvalidInput(fmt::format("{}: {} CTAs on a rank; {} allows {}", name_, blocks, options_.ctas_hint,
                                    *options_.max_ctas));
  instances = std::min<int64_t>(instances, std::max(1, options_.max_ctas.value_or(kDefaultBlocks) / blocks));
  for (const auto& [id, device] : devices_) {
    const int64_t room =
        static_cast<int64_t>(kernel.blocks_per_multiprocessor()) * device->gpu->properties().multiprocessors;
    instances = std::min(instances, room / (static_cast<int64_t>(blocks) * device->ranks));
  }
  // If not even one fits, the reservation says why.
  int32_t mine = static_cast<int32_t>(std::max<int64_t>(1, instances));
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                        TellAll(std::string(reinterpret_cast<const char*>(&mine), sizeof mine)));
  for (const std::string& other : all) {
    int32_t theirs = 1;
    if (other.size() != sizeof theirs)
      return InvalidInput(fmt::format("{}: a process sent {} bytes; expected {}: do all load the same plans?",
                                      name_, other.size(), sizeof theirs));
    std::memcpy(&theirs, other.data(), sizeof theirs);
    mine = std::min(mine, theirs);
  }
  shape_.instances = mine;
  threads_ = kernel.info().threads;
  return OkStatus();
}

StatusOr<std::vector<std::string>> DeviceProgram::TellAll(std::string mine) const {
  if (options_.proxy != nullptr) return options_.proxy->hosts().all_gather(mine);
  XCCL_ASSIGN_OR_RETURN(std::vector<Parcel> all, exchange_.all({std::move(mine), {}}));
  std::vector<std::string> said;
  for (Parcel& one : all) said.push_back(std::move(one.bytes));
  return said;
}

// Before the tables are written: they hold addresses of the line.
Status DeviceProgram::ConnectHosts() {
  if (options_.proxy == nullptr || !CrossesHosts(program_, shape_.host_of)) return OkStatus();
  XCCL_CHECK(program_.protocol == Protocol::kSimple);
  const ArenaLayout& layout = layouts_[ranks_[0].rank];
  XCCL_ASSIGN_OR_RETURN(
      line_, options_.proxy->Connect(ranks_[0].gpu, program_, options_.rails, shape_, layout, ranks_[0].rank,
                                     [this](const Status& reason) { Abort(reason); }));
  if (layout.cells == 0) return OkStatus();
  const device::Fifo fifo = line_->fifo();
  return WriteAt(0, layout.fifo, std::as_bytes(std::span(&fifo, 1)));
}

std::vector<std::shared_ptr<const Gpu>> DeviceProgram::Gpus() const {
  std::vector<std::shared_ptr<const Gpu>> gpus;
  for (const auto& [id, device] : devices_) gpus.push_back(device->gpu);
  return gpus;
}

// The decision is equal on all ranks.
void DeviceProgram::AllowDirect() {
  switch_direct_ = options_.direct && form_.switch_direct && options_.buffers != nullptr;
  direct_ = options_.direct && form_.direct && (one_process_ || options_.buffers != nullptr);
  if (!direct_ || options_.buffers != nullptr || devices_.size() < 2) return;
  reach_.emplace(Gpus());
  direct_ = reach_->Enable().ok();
  if (!direct_) reach_.reset();
}

Status DeviceProgram::MakeArenas() {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const Sharing sharing = one_process_ ? Sharing::kNone : BestSharing(ranks_[i].gpu->properties());
    XCCL_ASSIGN_OR_RETURN(
        states_[i]->arena,
        DeviceMemory::Create(ranks_[i].gpu, static_cast<size_t>(layouts_[ranks_[i].rank].bytes), sharing,
                             Gpus(), fmt::format("{}: rank {}", name_, ranks_[i].rank.value)));
  }
  for (auto& [id, device] : devices_) {
    XCCL_ASSIGN_OR_RETURN(device->rank_args,
                          DeviceMemory::Create(device->gpu, sizeof(device::RankArgs) * device->ranks,
                                               Sharing::kLegacy, {}, name_ + ": tables"));
  }
  return OkStatus();
}

// A parcel holds this process's ranks, each with a description of its arena.
Status DeviceProgram::MapPeers() {
  Parcel mine;
  for (size_t i = 0; i < ranks_.size() && !one_process_; ++i) {
    XCCL_ASSIGN_OR_RETURN(Parcel arena, states_[i]->arena.Export());
    AppendNumber(mine, static_cast<uint64_t>(ranks_[i].rank.value));
    AppendParcel(mine, std::move(arena));
  }
  XCCL_ASSIGN_OR_RETURN(std::vector<Parcel> all, exchange_.all(std::move(mine)));
  const size_t ranks = static_cast<size_t>(program_.ranks.size());
  std::vector<bool> here(ranks);
  SeenArenas seen;
  for (const auto& [id, device] : devices_) seen[id].resize(ranks);
  for (size_t i = 0; i < ranks_.size(); ++i) {
    here[ranks_[i].rank.index()] = true;
    for (auto& [id, addresses] : seen) addresses[ranks_[i].rank.index()] = states_[i]->arena.address();
  }
  for (size_t p = 0; p < all.size(); ++p) {
    if (static_cast<int32_t>(p) == exchange_.party) continue;
    ParcelReader reader(std::move(all[p]));
    while (!reader.AtEnd()) {
      const uint64_t rank = reader.Number();
      const Parcel arena = reader.One();
      if (reader.broken()) return InvalidInput(name_ + ": a process sent a broken description");
      if (rank >= ranks || here[rank])
        return InvalidInput(fmt::format("{}: rank {} is in two processes", name_, rank));
      for (auto& [id, addresses] : seen) {
        StatusOr<DeviceMemory> memory = DeviceMemory::Import(devices_[id]->gpu, arena);
        if (!memory.ok()) return Annotate(memory.status(), fmt::format("{}: rank {}", name_, rank));
        addresses[rank] = memory->address();
        mapped_.push_back(*std::move(memory));
      }
    }
  }
  XCCL_RETURN_IF_ERROR(ConnectGroups());
  for (size_t i = 0; i < ranks_.size(); ++i) XCCL_RETURN_IF_ERROR(WriteArena(i, seen[ranks_[i].gpu->id()]));
  // No rank launches before all have mapped.
  return exchange_.all({}).status();
}

Status DeviceProgram::ConnectGroups() {
  if (program_.groups.empty()) return OkStatus();
  std::vector<SwitchRank> local;
  for (size_t i = 0; i < ranks_.size(); ++i)
    local.push_back({ranks_[i].rank, ranks_[i].gpu, &states_[i]->arena, layouts_[ranks_[i].rank].regions});
  XCCL_ASSIGN_OR_RETURN(switches_, ConnectSwitches(TeamsOf(program_, shape_), local, program_.ranks.size(),
                                                   options_.multicast, exchange_));
  return OkStatus();
}

// Writes at an offset of a rank's arena.
Status DeviceProgram::WriteAt(size_t local, int64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return OkStatus();
  return ConstantTables::Write(ranks_[local].gpu,
                               states_[local]->arena.address() + static_cast<uint64_t>(offset), bytes.data(),
                               bytes.size());
}

// Writes everything that a rank's arena holds from the start.
Status DeviceProgram::WriteArena(size_t local, std::span<const DevicePointer> arenas) {
  const Rank rank = ranks_[local].rank;
  const ArenaLayout& layout = layouts_[rank];
  for (const ArenaLayout::End& end : layout.ends)
    if (!end.cell && arenas[end.peer.index()] == 0)
      return InvalidInput(fmt::format("{}: no process has rank {}", name_, end.peer.value));
  XCCL_RETURN_IF_ERROR(WriteWindows(local));
  const std::vector<device::Connection> ends = ConnectionsOf(layouts_, shape_, rank, arenas, Remote());
  XCCL_RETURN_IF_ERROR(WriteAt(local, layout.connections, std::as_bytes(std::span(ends))));
  XCCL_RETURN_IF_ERROR(WriteGroups(local, arenas));
  XCCL_RETURN_IF_ERROR(WriteFirstMessage(local));
  return WriteRankArgs(local);
}

// Sets the counters of a rank's ends, and in its slots the flags that messages before would have left.
Status DeviceProgram::WriteFirstMessage(size_t local) {
  const uint64_t first = options_.first_message;
  if (first == 0 || !program_.groups.empty()) return OkStatus();
  const auto counter = std::as_bytes(std::span(&first, 1));
  const std::vector<uint32_t> slots(
      static_cast<size_t>(program_.slots * shape_.slot_bytes) / sizeof(uint32_t),
      static_cast<uint32_t>(first));
  for (const ArenaLayout::End& end : layouts_[ranks_[local].rank].ends) {
    if (end.cell)
      return InvalidInput(name_ + ": a first message, and ranks on other hosts; expected one host");
    XCCL_RETURN_IF_ERROR(WriteAt(local, end.steps, counter));
    XCCL_RETURN_IF_ERROR(WriteAt(local, end.counter, counter));
    if (end.slots) XCCL_RETURN_IF_ERROR(WriteAt(local, *end.slots, std::as_bytes(std::span(slots))));
  }
  return OkStatus();
}

// The deltas to every rank of the program: ranks of this process have the same addresses; the registry knows
// those of the others, and of the switch.
Status DeviceProgram::WriteWindows(size_t local) {
  const size_t of_ranks = static_cast<size_t>(program_.ranks.size()) * kWindows;
  const ArenaLayout& layout = layouts_[ranks_[local].rank];
  std::vector<uint64_t> windows(of_ranks + (layout.regions.empty() ? 0 : 2 * kWindows), device::kUnmapped);
  if (options_.buffers != nullptr && !layout.regions.empty())
    std::ranges::copy(options_.buffers->SwitchDeltas(), windows.data() + of_ranks);
  for (Rank r(0); r.value < program_.ranks.size(); ++r.value) {
    uint64_t* const of_rank = windows.data() + r.index() * kWindows;
    if (std::ranges::find(ranks_, r, &LocalRank::rank) != ranks_.end()) {
      of_rank[0] = 0;
    } else if (options_.buffers != nullptr) {
      std::ranges::copy(options_.buffers->DeltasTo(r), of_rank);
    }
  }
  return WriteAt(local, layout.windows, std::as_bytes(std::span(windows)));
}

Status DeviceProgram::WriteGroups(size_t local, std::span<const DevicePointer> arenas) {
  const Rank rank = ranks_[local].rank;
  const ArenaLayout& layout = layouts_[rank];
  if (layout.groups.empty()) return OkStatus();
  const std::vector<Team> teams = TeamsOf(program_, shape_);
  std::vector<TeamSwitch> switches;
  for (size_t t = 0; t < teams.size(); ++t) {
    TeamSwitch& of = switches.emplace_back();
    if (const std::optional<MulticastMemory>& memory = switches_.teams[t]) of.multicast = memory->address();
    // The ranks here that register together are all on this host, as a team's are.
    of.reaches_buffers =
        options_.buffers != nullptr && std::ssize(teams[t].ranks) == options_.buffers->ranks();
  }
  const GroupTables tables = GroupTablesOf(program_, layouts_, shape_, rank, arenas, switches, Remote());
  for (size_t g = 0; g < tables.members.size(); ++g)
    XCCL_RETURN_IF_ERROR(
        WriteAt(local, layout.groups[g].members, std::as_bytes(std::span(tables.members[g]))));
  return WriteAt(local, layout.group_connections, std::as_bytes(std::span(tables.connections)));
}

Status DeviceProgram::BuffersChanged() {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const std::lock_guard lock(share_->orders.Turn(ranks_[i].rank));
    XCCL_RETURN_IF_ERROR(WriteWindows(i));
  }
  return OkStatus();
}

Status DeviceProgram::WriteRankArgs(size_t local) {
  const RankState& state = *states_[local];
  const ArenaLayout& layout = layouts_[ranks_[local].rank];
  const DevicePointer arena = state.arena.address();
  device::RankArgs args;
  args.connections = PointerTo<const device::Connection>(arena + static_cast<uint64_t>(layout.connections));
  args.blocks = PointerTo<device::BlockState>(arena + static_cast<uint64_t>(layout.blocks));
  args.groups =
      PointerTo<const device::GroupConnection>(arena + static_cast<uint64_t>(layout.group_connections));
  if (layout.cells > 0) args.fifo = PointerTo<device::Fifo>(arena + static_cast<uint64_t>(layout.fifo));
  return ConstantTables::Write(
      ranks_[local].gpu, state.device->rank_args.address() + sizeof args * static_cast<size_t>(state.index),
      &args, sizeof args);
}

}  // namespace xccl::cuda
