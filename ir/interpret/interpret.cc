// Every threadblock has a program counter and a pass. A seeded random choice picks the next threadblock;
// one that must wait is skipped. A message is the bytes of an instruction's slices, one after another.
#include "ir/interpret/interpret.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <span>

#include "base/random.h"
#include "ir/program_index.h"
#include "ir/sizes.h"

namespace xccl {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::byte kUnwritten{0xCB};

struct RankMemory {
  Bytes user, output, scratch;          // in place, user holds the output too; else the input alone
  int64_t input_at = 0, output_at = 0;  // element offsets of the buffers
  BufferLayout input_layout, output_layout, scratch_layout;
};

struct BlockProgress {
  int32_t next = 0, pass = 0;
};

class Interpreter {
 public:
  Interpreter(const Program& program, const Collective& collective, const InterpretOptions& options)
      : program_(program),
        collective_(collective),
        options_(options),
        sizes_(collective, options.size_bytes, SizeOf(options.type)),
        element_bytes_(SizeOf(options.type)),
        passes_(NumPasses(program, sizes_)),
        index_(program),
        memory_(static_cast<size_t>(program.ranks.size())),
        under_way_(program.connections.size()),
        blocks_(static_cast<size_t>(index_.num_blocks())) {}

  Status Load(const std::vector<Bytes>& inputs) {
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) {
      RankMemory& memory = memory_[r];
      memory.input_layout = LayoutOf(program_, collective_, sizes_, r, BufferKind::kInput);
      memory.output_layout = LayoutOf(program_, collective_, sizes_, r, BufferKind::kOutput);
      memory.scratch_layout = LayoutOf(program_, collective_, sizes_, r, BufferKind::kScratch);
      const int64_t bytes = memory.input_layout.elements * element_bytes_;
      const int64_t given = r.index() < inputs.size() ? static_cast<int64_t>(inputs[r.index()].size()) : 0;
      if (given != bytes)
        return InvalidInput(
            fmt::format("interpret: rank {}: {} input bytes; expected {}", r.value, given, bytes));
      if (options_.in_place && collective_.MemberIndex(r)) {
        XCCL_RETURN_IF_ERROR(Overlay(r, memory));
      } else {
        memory.user.assign(static_cast<size_t>(bytes), kUnwritten);
        memory.output.assign(static_cast<size_t>(memory.output_layout.elements * element_bytes_), kUnwritten);
      }
      memory.scratch.assign(static_cast<size_t>(memory.scratch_layout.elements * element_bytes_), kUnwritten);
      if (bytes > 0)
        std::memcpy(&memory.user[static_cast<size_t>(memory.input_at * element_bytes_)],
                    inputs[r.index()].data(), static_cast<size_t>(bytes));
    }
    return OkStatus();
  }

  Status Run() {
    std::vector<int32_t> order(blocks_.size());
    std::iota(order.begin(), order.end(), 0);
    Random random(options_.seed);
    int64_t left = static_cast<int64_t>(index_.size()) * passes_;
    while (left > 0) {
      random.Shuffle(std::span(order));
      bool moved = false;
      for (int32_t block : order) {
        // A threadblock takes several steps in a row, so that some run far ahead of others.
        for (uint64_t burst = random.Below(4) + 1; burst > 0 && CanGoOn(block); --burst) {
          Step(block);
          --left;
          moved = true;
        }
      }
      if (!moved) return Stuck();
    }
    return OkStatus();
  }

  std::vector<Bytes> TakeOutputs() {
    std::vector<Bytes> outputs;
    for (RankMemory& memory : memory_) {
      const int64_t bytes = memory.output_layout.elements * element_bytes_;
      if (options_.in_place && memory.output.empty() && bytes > 0) {
        const auto begin = memory.user.begin() + memory.output_at * element_bytes_;
        outputs.emplace_back(begin, begin + bytes);
      } else {
        outputs.push_back(std::move(memory.output));
      }
    }
    return outputs;
  }

 private:
  // Gives input and output one shared allocation.
  Status Overlay(Rank r, RankMemory& memory) {
    const std::optional<int32_t> shift = InPlaceShift(collective_, r);
    if (!shift) return InvalidInput(fmt::format("interpret: {} has no in-place form", collective_.name()));
    const auto begin = [](const BufferLayout& layout, int32_t slot) {
      return slot < static_cast<int32_t>(layout.begin.size()) ? layout.begin[static_cast<size_t>(slot)]
                                                              : layout.elements;
    };
    memory.input_at = *shift > 0 ? begin(memory.output_layout, *shift) : 0;
    memory.output_at = *shift < 0 ? begin(memory.input_layout, -*shift) : 0;
    const int64_t elements = std::max(memory.input_at + memory.input_layout.elements,
                                      memory.output_at + memory.output_layout.elements);
    memory.user.assign(static_cast<size_t>(elements * element_bytes_), kUnwritten);
    return OkStatus();
  }

  const Instruction& Next(int32_t block) const {
    return index_.instruction(index_.BlockFirst(block) + blocks_[static_cast<size_t>(block)].next);
  }

  bool CanGoOn(int32_t block) const {
    const BlockProgress& state = blocks_[static_cast<size_t>(block)];
    const int32_t size = index_.BlockFirst(block + 1) - index_.BlockFirst(block);
    if (size == 0 || state.pass == passes_) return false;
    const Instruction& i = Next(block);
    if (Receives(i.op))
      for (int32_t connection : index_.RecvConnections(block))
        if (under_way_[static_cast<size_t>(connection)].empty()) return false;
    if (Sends(i.op))
      for (int32_t connection : index_.SendConnections(block))
        if (under_way_[static_cast<size_t>(connection)].size() == static_cast<size_t>(program_.slots))
          return false;
    for (const Dependency& on : index_.Dependencies(index_.BlockFirst(block) + state.next)) {
      const BlockProgress& other =
          blocks_[static_cast<size_t>(index_.RankFirstBlock(index_.BlockRank(block)) + on.threadblock)];
      if (other.pass < state.pass || (other.pass == state.pass && other.next <= on.index)) return false;
    }
    return true;
  }

  // The elements of slot `operand.slot + k` that this pass touches.
  std::span<std::byte> SliceAt(RankMemory& memory, const Operand& operand, int32_t k, int32_t pass) {
    const bool input = operand.buffer == BufferKind::kInput, output = operand.buffer == BufferKind::kOutput;
    const BufferLayout& layout = input    ? memory.input_layout
                                 : output ? memory.output_layout
                                          : memory.scratch_layout;
    const size_t slot = static_cast<size_t>(operand.slot + k);
    const Slice slice = SliceOf(sizes_.ChunkElements(layout.chunk[slot]), element_bytes_, passes_, pass);
    const bool shared = output && options_.in_place && memory.output.empty();
    Bytes& bytes = input || shared ? memory.user : output ? memory.output : memory.scratch;
    const int64_t base = input ? memory.input_at : output ? memory.output_at : 0;
    return std::span(bytes).subspan(
        static_cast<size_t>((base + layout.begin[slot] + slice.begin) * element_bytes_),
        static_cast<size_t>((slice.end - slice.begin) * element_bytes_));
  }

  // Takes the next message; for a group, the reduction of all its members' next messages.
  Bytes Take(std::span<const int32_t> connections) {
    std::vector<Bytes> messages;
    std::vector<const void*> members;
    for (int32_t connection : connections) {
      auto& queue = under_way_[static_cast<size_t>(connection)];
      messages.push_back(std::move(queue.front()));
      queue.pop_front();
    }
    Bytes& received = messages.front();
    for (const Bytes& message : messages) members.push_back(message.data());
    if (members.size() > 1)
      ReduceMembersReference(options_.type, options_.op, received.data(), members,
                             static_cast<int64_t>(received.size()) / element_bytes_);
    return std::move(received);
  }

  void Step(int32_t block) {
    BlockProgress& state = blocks_[static_cast<size_t>(block)];
    const Instruction& i = Next(block);
    RankMemory& memory = memory_[index_.BlockRank(block)];
    Bytes received, sent;
    if (Receives(i.op)) received = Take(index_.RecvConnections(block));
    size_t taken = 0;
    for (int32_t k = 0; k < i.count && i.op != Opcode::kNop; ++k) {
      const Operand& sized = WritesDestination(i.op) ? i.dst : i.src;
      Bytes value(SliceAt(memory, sized, k, state.pass).size());
      if (Receives(i.op)) {
        std::copy_n(received.begin() + static_cast<int64_t>(taken), value.size(), value.begin());
        taken += value.size();
      }
      Combine(i, memory, k, state.pass, value);
      if (WritesDestination(i.op)) std::ranges::copy(value, SliceAt(memory, i.dst, k, state.pass).begin());
      if (Sends(i.op)) sent.insert(sent.end(), value.begin(), value.end());
    }
    if (Sends(i.op))
      for (int32_t connection : index_.SendConnections(block))
        under_way_[static_cast<size_t>(connection)].push_back(sent);
    if (++state.next == index_.BlockFirst(block + 1) - index_.BlockFirst(block)) {
      state.next = 0;
      ++state.pass;
    }
  }

  // `value` holds what was received, if anything; the result of the instruction replaces it.
  void Combine(const Instruction& i, RankMemory& memory, int32_t k, int32_t pass, Bytes& value) {
    const int64_t count = static_cast<int64_t>(value.size()) / element_bytes_;
    const int32_t n = collective_.num_members();
    if (ReadsSource(i.op)) {
      Bytes local(value.size());
      const std::span<std::byte> source = SliceAt(memory, i.src, k, pass);
      std::ranges::copy(source, local.begin());
      if (i.first) ScaleReference(options_.type, options_.op, n, local.data(), local.data(), count);
      if (Receives(i.op)) {
        ReduceReference(options_.type, options_.op, value.data(), local.data(), value.data(), count);
      } else if (i.op == Opcode::kReduce) {
        ReduceReference(options_.type, options_.op, value.data(), SliceAt(memory, i.dst, k, pass).data(),
                        local.data(), count);
      } else {
        value = std::move(local);
      }
    }
    if (i.final) FinishReference(options_.type, options_.op, n, value.data(), count);
  }

  Status Stuck() const {
    for (int32_t block = 0; block < index_.num_blocks(); ++block) {
      const BlockProgress& state = blocks_[static_cast<size_t>(block)];
      if (state.pass == passes_ || index_.BlockFirst(block + 1) == index_.BlockFirst(block)) continue;
      return InvalidInput(
          fmt::format("interpret: {} of pass {}: can never go on; expected a program that "
                      "verifies",
                      ToString(index_.Site(index_.BlockFirst(block) + state.next)), state.pass));
    }
    return BugError("interpret: every threadblock is done, but instructions are left");
  }

  const Program& program_;
  const Collective& collective_;
  const InterpretOptions& options_;
  const CollectiveSizes sizes_;
  const int64_t element_bytes_;
  const int32_t passes_;
  const ProgramIndex index_;
  IdVector<Rank, RankMemory> memory_;
  std::vector<std::deque<Bytes>> under_way_;  // by connection
  std::vector<BlockProgress> blocks_;
};

}  // namespace

StatusOr<std::vector<std::vector<std::byte>>> Interpret(const Program& program, const Collective& collective,
                                                        const std::vector<std::vector<std::byte>>& inputs,
                                                        const InterpretOptions& options) {
  if (options.op == ReduceOp::kAvg && collective.kind() == CollectiveKind::kCustom)
    return InvalidInput(
        fmt::format("interpret: avg of {}; expected one of the named collectives", collective.name()));
  Interpreter interpreter(program, collective, options);
  XCCL_RETURN_IF_ERROR(interpreter.Load(inputs));
  XCCL_RETURN_IF_ERROR(interpreter.Run());
  return interpreter.TakeOutputs();
}

}  // namespace xccl
