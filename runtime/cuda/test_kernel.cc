#include "runtime/cuda/test_kernel.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/kernel/kernel_form.h"
#include "ir/kernel/kernel_sizes.h"
#include "ir/sizes.h"

namespace xccl::cuda {
namespace {

using Clock = std::chrono::steady_clock;

struct Plan {
  Program program;
  Collective collective;
  KernelForm form;
};

// One block of a launch.
class Block {
 public:
  Block(const Plan& plan, const device::LaunchArgs& args, int32_t block) : plan_(plan), args_(args) {
    const int32_t copies = plan.form.blocks_per_rank * args.instances;
    local_ = block / copies;
    rank_ = Rank(args.first_rank + local_);
    instance_ = block % copies / plan.form.blocks_per_rank;
    block_ = block % plan.form.blocks_per_rank;
    ranks_ = args.ranks + local_;
    own_ = args.buffers != nullptr ? args.buffers + local_ : &args.own;
  }

  void Run() {
    const KernelRank& rank = plan_.form.ranks[rank_];
    if (block_ >= static_cast<int32_t>(rank.blocks.size())) return;
    const std::vector<KernelInstruction>& instructions =
        rank.blocks[static_cast<size_t>(block_)].instructions;
    device::BlockState& state = State(block_);
    epoch_ = state.epoch;
    uint64_t done = 0;
    const std::vector<int64_t> parts(static_cast<size_t>(plan_.collective.num_parts()), args_.elements);
    const CollectiveSizes sizes = CollectiveSizes::OfParts(plan_.collective, parts, sizeof(float));
    Layouts(sizes);
    int32_t passes_done = 0;
    for (int32_t pass = instance_; pass < args_.passes && !stopped_; pass += args_.instances, ++passes_done) {
      pass_ = pass;
      for (const KernelInstruction& i : instructions) {
        for (const KernelDependency& d : i.after) {
          const size_t of_block = rank.blocks[static_cast<size_t>(d.block)].instructions.size();
          AwaitBlock(d.block, passes_done * of_block + static_cast<uint64_t>(d.index) + 1, i);
        }
        if (stopped_) return;
        Execute(i, sizes);
        if (stopped_) return;
        std::atomic_ref(state.progress).store(epoch_ << 32 | ++done, std::memory_order_release);
      }
    }
    state.epoch = epoch_ + 1;
    std::atomic_ref(state.progress).store((epoch_ + 1) << 32, std::memory_order_release);
  }

 private:
  device::BlockState& State(int32_t block) {
    return ranks_->blocks[instance_ * plan_.form.blocks_per_rank + block];
  }

  void Layouts(const CollectiveSizes& sizes) {
    for (BufferKind kind : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch})
      layouts_[static_cast<size_t>(kind)] = LayoutOf(plan_.program, plan_.collective, sizes, rank_, kind);
    // Scratch has the kernels' own layout.
    BufferLayout& scratch = layouts_[static_cast<size_t>(BufferKind::kScratch)];
    const std::vector<int64_t> begins = ScratchRunBegins(plan_.form, sizes, rank_);
    const std::vector<ScratchRun>& runs = plan_.form.ranks[rank_].scratch;
    for (size_t run = 0; run < runs.size(); ++run) {
      const size_t end =
          run + 1 < runs.size() ? static_cast<size_t>(runs[run + 1].first_slot) : scratch.chunk.size();
      const ChunkId first = scratch.chunk[static_cast<size_t>(runs[run].first_slot)];
      for (size_t s = static_cast<size_t>(runs[run].first_slot); s < end; ++s)
        scratch.begin[s] = begins[run] + sizes.ChunkBegin(scratch.chunk[s]) - sizes.ChunkBegin(first);
    }
  }

  float* At(const Operand& operand, int32_t c, int64_t offset) {
    char* base = operand.buffer == BufferKind::kInput    ? const_cast<char*>(own_->input)
                 : operand.buffer == BufferKind::kOutput ? own_->output
                                                         : ranks_->scratch;
    const BufferLayout& layout = layouts_[static_cast<size_t>(operand.buffer)];
    return reinterpret_cast<float*>(base) + layout.begin[static_cast<size_t>(operand.slot + c)] + offset;
  }

  template <typename Condition>
  void Await(Condition condition, device::Wait wait, int32_t peer, uint64_t expected,
             const KernelInstruction& i) {
    const Clock::time_point until = Clock::now() + std::chrono::nanoseconds(args_.spin_limit_ns);
    while (true) {
      const uint64_t seen = condition();
      if (seen >= expected) return;
      const bool aborted =
          args_.abort != nullptr && std::atomic_ref(*const_cast<uint32_t*>(args_.abort)).load() != 0;
      if (aborted || std::atomic_ref(*args_.stop).load() != 0 || Clock::now() > until) {
        GiveUp(aborted ? device::Wait::kAborted : wait, peer, expected, seen, i);
        return;
      }
      std::this_thread::yield();
    }
  }

  void GiveUp(device::Wait wait, int32_t peer, uint64_t expected, uint64_t seen, const KernelInstruction& i) {
    stopped_ = true;
    std::atomic_ref(*args_.stop).store(1);
    uint32_t nothing = 0;
    if (!std::atomic_ref(args_.error->state).compare_exchange_strong(nothing, 1)) return;
    args_.error->rank = rank_.value;
    args_.error->threadblock = i.threadblock;
    args_.error->instruction = i.index;
    args_.error->pass = pass_;
    args_.error->wait = wait;
    args_.error->peer = peer;
    args_.error->expected = expected;
    args_.error->seen = seen;
    std::atomic_ref(args_.error->state).store(2, std::memory_order_release);
  }

  void AwaitBlock(int32_t block, uint64_t done, const KernelInstruction& i) {
    Await([&] { return std::atomic_ref(State(block).progress).load(std::memory_order_acquire); },
          device::Wait::kDependency, block, epoch_ << 32 | done, i);
  }

  void Execute(const KernelInstruction& i, const CollectiveSizes& sizes) {
    const device::Connection* from = End(i.from);
    const device::Connection* to = End(i.to);
    const uint64_t slots = static_cast<uint64_t>(plan_.program.slots);
    if (from != nullptr)
      Await([&] { return std::atomic_ref(*from->head).load(std::memory_order_acquire); },
            device::Wait::kMessage, Peer(*i.from), *from->steps + 1, i);
    if (to != nullptr && *to->steps >= slots)
      Await([&] { return std::atomic_ref(*to->tail).load(std::memory_order_acquire); }, device::Wait::kCredit,
            Peer(*i.to), *to->steps + 1 - slots, i);
    if (stopped_) return;
    char* in = from == nullptr ? nullptr : from->slots + *from->steps % slots * from->slot_bytes;
    char* out = to == nullptr ? nullptr : to->slots + *to->steps % slots * to->slot_bytes;
    const Operand& known = ReadsSource(i.what.op) ? i.what.src : i.what.dst;
    for (int32_t c = 0; c < i.what.count; ++c) {
      const ChunkId chunk =
          layouts_[static_cast<size_t>(known.buffer)].chunk[static_cast<size_t>(known.slot + c)];
      const Slice slice = SliceOf(sizes.ChunkElements(chunk), sizeof(float), args_.passes, pass_);
      const int64_t count = slice.end - slice.begin;
      Move(i.what, c, slice.begin, count, reinterpret_cast<float*>(in), reinterpret_cast<float*>(out));
      if (in != nullptr) in += count * 4;
      if (out != nullptr) out += count * 4;
    }
    if (to != nullptr) std::atomic_ref(*to->head).store(++*to->steps, std::memory_order_release);
    if (from != nullptr) std::atomic_ref(*from->tail).store(++*from->steps, std::memory_order_release);
  }

  void Move(const Instruction& what, int32_t c, int64_t offset, int64_t count, const float* in, float* out) {
    for (int64_t e = 0; e < count; ++e) {
      float value = 0;
      const bool reduces = what.op == Opcode::kRecvReduceSend || what.op == Opcode::kRecvReduceCopy ||
                           what.op == Opcode::kRecvReduceCopySend;
      if (in != nullptr) value = in[e];
      if (in == nullptr || reduces) value += ReadsSource(what.op) ? At(what.src, c, offset)[e] : 0;
      if (what.op == Opcode::kReduce) value += At(what.dst, c, offset)[e];
      if (WritesDestination(what.op)) At(what.dst, c, offset)[e] = value;
      if (out != nullptr) out[e] = value;
    }
  }

  const device::Connection* End(const std::optional<int32_t>& end) const {
    return end ? ranks_->connections + *end * args_.instances + instance_ : nullptr;
  }
  int32_t Peer(int32_t end) const {
    const Connection& c =
        plan_.program
            .connections[static_cast<size_t>(plan_.form.ranks[rank_].connections[static_cast<size_t>(end)])];
    return c.src == rank_ ? c.dst.value : c.src.value;
  }

  const Plan& plan_;
  const device::LaunchArgs& args_;
  int32_t local_ = 0, instance_ = 0, block_ = 0, pass_ = 0;
  Rank rank_;
  const device::RankArgs* ranks_ = nullptr;
  const device::RankBuffers* own_ = nullptr;
  uint64_t epoch_ = 0;
  bool stopped_ = false;
  BufferLayout layouts_[3];
};

}  // namespace

void AddTestKernel(FakeDriver& driver, const Program& program, const Collective& collective) {
  StatusOr<KernelForm> form = MakeKernelForm(program, collective);
  XCCL_CHECK(form.ok());
  const auto plan = std::make_shared<const Plan>(Plan{program, collective, *std::move(form)});
  device::KernelInfo info;
  info.ranks = program.ranks.size();
  info.blocks_per_rank = plan->form.blocks_per_rank;
  info.threads = 256;
  info.slots = program.slots;
  info.instances = program.instances;
  driver.AddGlobal("xccl_kernel_info", &info, sizeof info);
  driver.AddKernel(
      "xccl_kernel", sizeof(device::LaunchArgs),
      [plan](const std::byte* parameter, uint32_t blocks, uint32_t) {
        device::LaunchArgs args;
        std::memcpy(&args, parameter, sizeof args);
        std::vector<std::thread> threads;
        for (uint32_t b = 0; b < blocks; ++b)
          threads.emplace_back([&plan, &args, b] { Block(*plan, args, static_cast<int32_t>(b)).Run(); });
        for (std::thread& thread : threads) thread.join();
      });
}

}  // namespace xccl::cuda
