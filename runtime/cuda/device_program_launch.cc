// Launching. A rank's thread has the rank's turn (launch_orders.h) and takes other locks for moments only: it
// waits for no kernel and frees nothing, since what runs may wait for another rank's launch.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/kernel/kernel_sizes.h"
#include "runtime/cuda/device_program.h"
#include "runtime/cuda/device_program_state.h"
#include "runtime/cuda/registry.h"

namespace xccl::cuda {
namespace {

constexpr size_t kMostPrepared = 4096;

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

// Doubles at least, so that all memory together is at most twice the last.
Status DeviceProgram::GrowScratch(size_t local, const CollectiveSizes& sizes) {
  const LocalRank& rank = ranks_[local];
  std::vector<DeviceMemory>& scratch = states_[local]->scratch;
  const auto needed = static_cast<size_t>(ScratchBytes(form_, sizes, rank.rank));
  const size_t there_is = scratch.empty() ? 0 : scratch.back().bytes();
  if (needed <= there_is) return OkStatus();
  const CaptureRelaxed relaxed(*rank.gpu);
  XCCL_ASSIGN_OR_RETURN(DeviceMemory memory,
                        DeviceMemory::Create(rank.gpu, std::max(needed, 2 * there_is), Sharing::kNone, Gpus(),
                                             fmt::format("{}: scratch of rank {}", name_, rank.rank.value)));
  scratch.push_back(std::move(memory));
  return OkStatus();
}

StatusOr<const DeviceProgram::Prepared*> DeviceProgram::Prepare(size_t local, const CollectiveSizes& sizes,
                                                                const DeviceCall& call) {
  if (call.op == ReduceOp::kAvg && collective_.kind() == CollectiveKind::kCustom)
    return InvalidInput(
        fmt::format("{}: avg of {}; expected one of the named collectives", name_, collective_.name()));
  RankState& state = *states_[local];
  const Rank rank = ranks_[local].rank;
  std::vector<int64_t> key = {SizeOf(call.type)};
  for (int32_t p = 0; p < collective_.num_parts(); ++p) key.push_back(sizes.PartElements(PartId(p)));
  if (const auto at = state.prepared.find(key); at != state.prepared.end()) return &at->second;
  Prepared prepared;
  XCCL_ASSIGN_OR_RETURN(prepared.passes,
                        KernelPasses(program_, form_, sizes, shape_.slot_bytes, program_.protocol));
  XCCL_RETURN_IF_ERROR(GrowScratch(local, sizes));
  const std::vector<int64_t> input = PartBegins(collective_, sizes, rank, BufferKind::kInput);
  const std::vector<int64_t> output = PartBegins(collective_, sizes, rank, BufferKind::kOutput);
  prepared.input_bytes = static_cast<size_t>(input.back() * SizeOf(call.type));
  prepared.output_bytes = static_cast<size_t>(output.back() * SizeOf(call.type));
  if (form_.tables) {
    const std::lock_guard lock(state.device->mutex);
    const auto put = [&](const std::vector<int64_t>& values) -> StatusOr<const int64_t*> {
      XCCL_ASSIGN_OR_RETURN(const DevicePointer at, state.device->tables.Put(BytesOf(values)));
      return PointerTo<const int64_t>(at);
    };
    XCCL_ASSIGN_OR_RETURN(prepared.part_elements, put({key.begin() + 1, key.end()}));
    XCCL_ASSIGN_OR_RETURN(prepared.tables.input_begin, put(input));
    XCCL_ASSIGN_OR_RETURN(prepared.tables.output_begin, put(output));
    XCCL_ASSIGN_OR_RETURN(prepared.tables.scratch_begin, put(ScratchRunBegins(form_, sizes, rank)));
  }
  if (state.prepared.size() >= kMostPrepared) state.prepared.clear();
  return &state.prepared.emplace(std::move(key), prepared).first->second;
}

// The window in which peers reach a buffer of a rank of this process. Its peers go by what it tells them.
int32_t DeviceProgram::WindowOf(DevicePointer buffer, size_t bytes) {
  if (options_.buffers != nullptr) return options_.buffers->Find(buffer, bytes).value_or(device::kNoWindow);
  if (reach_) return reach_->Covers(buffer, bytes) ? 0 : device::kNoWindow;
  return one_process_ ? 0 : device::kNoWindow;
}

StatusOr<device::RankBuffers> DeviceProgram::BuffersOf(size_t local, const DeviceBuffers& buffers,
                                                       const CollectiveSizes& sizes, const DeviceCall& call) {
  XCCL_ASSIGN_OR_RETURN(const Prepared* prepared, Prepare(local, sizes, call));
  device::RankBuffers own = prepared->tables;
  own.input = PointerTo<const char>(buffers.input);
  own.output = PointerTo<char>(buffers.output);
  own.input_window = WindowOf(buffers.input, prepared->input_bytes);
  own.output_window = WindowOf(buffers.output, prepared->output_bytes);
  own.in_place = call.in_place ? 1 : 0;
  const std::vector<DeviceMemory>& scratch = states_[local]->scratch;
  if (!scratch.empty()) own.scratch = PointerTo<char>(scratch.back().address());
  own.scratch_window = one_process_ ? 0 : device::kNoWindow;
  return own;
}

// Queues local ranks from `first` on, which share a device, in one launch. With the first's turn.
Status DeviceProgram::LaunchRanks(size_t first, std::span<const DeviceBuffers> buffers,
                                  const CollectiveSizes& sizes, const DeviceCall& call, Stream stream) {
  XCCL_RETURN_IF_ERROR(Ready());
  RankState& state = *states_[first];
  DeviceState& device = *state.device;
  XCCL_ASSIGN_OR_RETURN(const Kernel* kernel, KernelFor(device, call));
  std::vector<device::RankBuffers> table;
  for (size_t i = 0; i < buffers.size(); ++i) {
    XCCL_ASSIGN_OR_RETURN(const device::RankBuffers own, BuffersOf(first + i, buffers[i], sizes, call));
    table.push_back(own);
  }
  XCCL_ASSIGN_OR_RETURN(const Prepared* prepared, Prepare(first, sizes, call));
  device::LaunchArgs args;
  if (table.size() == 1) {
    args.own = table[0];
  } else {
    const std::lock_guard lock(device.mutex);
    XCCL_ASSIGN_OR_RETURN(const DevicePointer at, device.tables.Put(BytesOf(table)));
    args.buffers = PointerTo<const device::RankBuffers>(at);
  }
  args.error = PointerTo<device::ErrorRecord>(record_.device());
  args.abort = PointerTo<const uint32_t>(record_.device() + kAbortAt);
  if (!form_.tables && collective_.num_parts() > 0) args.elements = sizes.PartElements(PartId(0));
  args.part_elements = prepared->part_elements;
  args.spin_limit_ns = options_.time_limit.count();
  args.jitter = options_.jitter;
  args.passes = prepared->passes;
  args.instances = shape_.instances;
  // `direct` is equal on all ranks, since all register in the same order.
  args.direct = (direct_ && (one_process_ || !options_.buffers->empty()) ? device::kDirectPeers : 0) |
                (switch_direct_ && options_.buffers->switched() ? device::kDirectSwitch : 0);
  if ((args.direct & device::kDirectSwitch) != 0) in_buffers_ = true;
  args.ranks = PointerTo<const device::RankArgs>(device.rank_args.address()) + state.index;
  args.table = PointerTo<const int32_t>(device.table.address());
  args.first_rank = ranks_[first].rank.value;
  args.ranks_here = static_cast<int32_t>(buffers.size());
  args.stop =
      PointerTo<uint32_t>(state.arena.address() + static_cast<uint64_t>(layouts_[ranks_[first].rank].stop));
  return Queue(args, *kernel, first, stream);
}

size_t DeviceProgram::LocalOf(Rank rank) const {
  const auto local = std::ranges::find(ranks_, rank, &LocalRank::rank);
  XCCL_CHECK(local != ranks_.end() && !options_.one_launch);
  return static_cast<size_t>(local - ranks_.begin());
}

Status DeviceProgram::Launch(Rank rank, const DeviceBuffers& buffers, const CollectiveSizes& sizes,
                             const DeviceCall& call, Stream stream) {
  const size_t local = LocalOf(rank);
  const std::lock_guard lock(share_->orders.Turn(rank));
  return LaunchRanks(local, {&buffers, 1}, sizes, call, stream);
}

Status DeviceProgram::LaunchAll(std::span<const DeviceBuffers> buffers, const CollectiveSizes& sizes,
                                const DeviceCall& call, std::span<const Stream> streams) {
  XCCL_CHECK(options_.one_launch && buffers.size() == ranks_.size() && streams.size() == devices_.size());
  size_t next = 0;
  for (const auto& [id, device] : devices_) {
    const size_t first = device->first_local;
    const std::lock_guard lock(share_->orders.Turn(ranks_[first].rank));
    XCCL_RETURN_IF_ERROR(LaunchRanks(first, buffers.subspan(first, static_cast<size_t>(device->ranks)), sizes,
                                     call, streams[next++]));
  }
  return OkStatus();
}

// A launch into a graph runs when the graph does: it waits for nothing here.
Status DeviceProgram::Queue(const device::LaunchArgs& args, const Kernel& kernel, size_t first,
                            Stream stream) {
  RankState& state = *states_[first];
  const Rank rank = ranks_[first].rank;
  const Gpu& gpu = *state.device->gpu;
  const ScopedContext context(gpu);
  const Driver& driver = gpu.driver();
  CaptureStatus capture = CaptureStatus::kNone;
  XCCL_RETURN_IF_ERROR(gpu.Check(driver.StreamIsCapturing(stream, &capture), "cuStreamIsCapturing"));
  const bool captured = capture != CaptureStatus::kNone;
  if (!captured) XCCL_RETURN_IF_ERROR(share_->orders.Follow(rank, gpu, stream, name_));
  XCCL_RETURN_IF_ERROR(
      Annotate(kernel.Launch(args, RankBlocks() * args.ranks_here, options_.one_launch, stream), name_));
  if (captured) {
    share_->orders.Captured(rank);
    return OkStatus();
  }
  XCCL_RETURN_IF_ERROR(gpu.Check(driver.EventRecord(state.done.get(), stream), "cuEventRecord"));
  state.launched = true;
  share_->orders.Launched(rank, gpu, stream, state.done.get());
  return OkStatus();
}

}  // namespace xccl::cuda
