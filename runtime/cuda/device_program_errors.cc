// Waiting, and errors while kernels run. The record lies in pinned memory: a load tells whether a threadblock
// gave up, without a call to the driver.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "runtime/cuda/device_program.h"
#include "runtime/cuda/device_program_state.h"

namespace xccl::cuda {
namespace {

constexpr auto kPollEvery = std::chrono::microseconds(20);
constexpr uint32_t kComplete = 2;

std::string Seconds(std::chrono::nanoseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  return seconds < 1 ? fmt::format("{:g} ms", seconds * 1e3) : fmt::format("{:g} s", seconds);
}

}  // namespace

std::string DeviceProgram::Describe(const device::ErrorRecord& record) const {
  const Rank rank(record.rank);
  std::string op = "start";
  int32_t channel = 0;
  if (record.rank >= 0 && record.rank < program_.ranks.size()) {
    const std::vector<Threadblock>& blocks = program_.ranks[rank].threadblocks;
    if (record.threadblock >= 0 && record.threadblock < static_cast<int32_t>(blocks.size())) {
      const Threadblock& block = blocks[static_cast<size_t>(record.threadblock)];
      channel = block.channel;
      if (record.instruction >= 0 && record.instruction < static_cast<int32_t>(block.instructions.size()))
        op = ToString(block.instructions[static_cast<size_t>(record.instruction)].op);
    }
  }
  std::string text = fmt::format("{}: rank {}: threadblock {}, instruction {} ({}), pass {}: ", name_,
                                 record.rank, record.threadblock, record.instruction, op, record.pass + 1);
  switch (record.wait) {
    case device::Wait::kNone:
      text += "gave up";
      break;
    case device::Wait::kDependency:
      text += fmt::format("expected threadblock {} to have done {} instructions, saw {}", record.peer,
                          record.expected & 0xffffffff, record.seen & 0xffffffff);
      break;
    case device::Wait::kMessage:
      text += fmt::format("expected message {} of rank {} on channel {}, saw {}", record.expected,
                          record.peer, channel, record.seen);
      break;
    case device::Wait::kCredit:
      text += fmt::format("expected rank {} to take message {} on channel {}, saw {} taken", record.peer,
                          record.expected, channel, record.seen);
      break;
    case device::Wait::kEntry:
      text += fmt::format("expected rank {} in launch {}, saw it in {}", record.peer, record.expected,
                          record.seen);
      break;
    case device::Wait::kDrain:
      text += fmt::format("expected rank {} to be done with {} messages, saw {}", record.peer,
                          record.expected, record.seen);
      break;
    case device::Wait::kAborted:
      return fmt::format("{}: rank {}: aborted in threadblock {}, instruction {} ({})", name_, record.rank,
                         record.threadblock, record.instruction, op);
  }
  return text + fmt::format("; nothing moved for {}", Seconds(options_.time_limit));
}

Status DeviceProgram::ReadRecord() {
  auto* record = reinterpret_cast<device::ErrorRecord*>(record_.host());
  if (std::atomic_ref<uint32_t>(record->state).load(std::memory_order_acquire) != kComplete)
    return OkStatus();
  Status failure = LimitReached(Describe(*record));
  if (options_.proxy != nullptr) options_.proxy->hosts().fail(failure);
  return failure;
}

Status DeviceProgram::Ready() {
  const std::lock_guard lock(failure_mutex_);
  if (failure_.ok()) failure_ = ReadRecord();
  return failure_;
}

Status DeviceProgram::Error() {
  const std::lock_guard lock(failure_mutex_);
  if (failure_.ok()) failure_ = ReadRecord();
  if (failure_.ok()) failure_ = exchange_.check();
  // Asking for an event's state would end another thread's capture.
  const CaptureRelaxed relaxed(*ranks_[0].gpu);
  for (size_t i = 0; i < states_.size() && failure_.ok(); ++i) {
    if (!states_[i]->launched) continue;
    const ScopedContext context(*ranks_[i].gpu);
    const Result result = ranks_[i].gpu->driver().EventQuery(states_[i]->done.get());
    if (result != Result::kSuccess && result != Result::kNotReady)
      failure_ = ranks_[i].gpu->Check(result, name_ + ": a kernel failed");
  }
  return failure_;
}

// It polls, so a peer whose process ends is noticed long before the kernels' own time limit.
Status DeviceProgram::Wait(RankState& state) const {
  const Gpu& gpu = *state.device->gpu;
  const CaptureRelaxed relaxed(gpu);
  const ScopedContext context(gpu);
  Status gone;
  while (true) {
    const Result result = gpu.driver().EventQuery(state.done.get());
    if (result != Result::kNotReady) return gone.ok() ? gpu.Check(result, name_ + ": a kernel failed") : gone;
    if (gone.ok()) gone = exchange_.check();
    if (!gone.ok())
      std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(record_.host() + kAbortAt)).store(1);
    std::this_thread::sleep_for(kPollEvery);
  }
}

void DeviceProgram::Await(size_t local) {
  if (!states_[local]->launched) return;
  const Status status = Wait(*states_[local]);
  const std::lock_guard lock(failure_mutex_);
  if (!status.ok() && failure_.ok()) failure_ = status;
}

Status DeviceProgram::Synchronize() {
  for (size_t local = 0; local < states_.size(); ++local) Await(local);
  return Error();
}

Status DeviceProgram::Synchronize(Rank rank) {
  Await(LocalOf(rank));
  return Error();
}

void DeviceProgram::Abort(const Status& reason) {
  std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(record_.host() + kAbortAt)).store(1);
  const std::lock_guard lock(failure_mutex_);
  if (failure_.ok()) failure_ = reason;
}

DeviceUsage DeviceProgram::usage() {
  DeviceUsage usage;
  usage.ctas = RankBlocks();
  usage.threads = threads_;
  usage.instances = shape_.instances;
  DeviceState& device = *devices_.begin()->second;
  usage.table_bytes = static_cast<int64_t>(device.table.bytes());
  {
    const std::lock_guard lock(device.mutex);
    const Kernel& kernel = device.kernels.begin()->second;
    usage.ctas_per_multiprocessor = kernel.blocks_per_multiprocessor();
    usage.registers = kernel.registers();
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    usage.arena_bytes = std::max(usage.arena_bytes, static_cast<int64_t>(states_[i]->arena.bytes()));
    const std::lock_guard lock(share_->orders.Turn(ranks_[i].rank));
    int64_t scratch = 0;
    for (const DeviceMemory& memory : states_[i]->scratch) scratch += static_cast<int64_t>(memory.bytes());
    usage.scratch_bytes = std::max(usage.scratch_bytes, scratch);
  }
  usage.slot_bytes = shape_.slot_bytes;
  if (std::ranges::any_of(program_.groups, HasSwitch)) {
    const std::string text = !switches_.why_not.empty() ? "member by member: " + switches_.why_not
                             : in_buffers_              ? "through the switch, in registered buffers"
                                                        : "through the switch";
    text.copy(usage.groups.data(), usage.groups.size() - 1);
  }
  return usage;
}

DeviceProgram::~DeviceProgram() {
  for (const std::unique_ptr<RankState>& state : states_) {
    if (!state->launched) continue;
    static_cast<void>(Wait(*state).ok());
    share_->orders.Forget(state->done.get());
  }
  if (line_ != nullptr) options_.proxy->Disconnect(line_, options_.time_limit);
}

}  // namespace xccl::cuda
