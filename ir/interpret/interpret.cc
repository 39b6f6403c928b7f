// Every threadblock has a program counter and a pass. A seeded random choice picks the next threadblock;
// one that must wait is skipped. A message is the bytes of an instruction's slices, one after another.
#include "ir/interpret/interpret.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <numeric>
#include <span>

#include "base/random.h"
#include "ir/analysis/program_index.h"
#include "ir/sizes.h"

namespace xccl {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::byte kUnwritten{0xCB};

// Input, output and scratch one after another; in place, input and output overlap.
struct RankMemory {
  Bytes bytes;
  std::array<BufferLayout, 3> layout;  // by BufferKind
  std::array<int64_t, 3> at = {};      // by BufferKind: the element at which the buffer begins
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
      for (BufferKind kind : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch})
        memory.layout[static_cast<size_t>(kind)] = LayoutOf(program_, collective_, sizes_, r, kind);
      const auto& [input, output, scratch] = memory.layout;
      const int64_t bytes = input.elements * element_bytes_;
      const int64_t given = r.index() < inputs.size() ? static_cast<int64_t>(inputs[r.index()].size()) : 0;
      if (given != bytes)
        return InvalidInput(
            fmt::format("interpret: rank {}: {} input bytes; expected {}", r.value, given, bytes));
      memory.at = {0, input.elements, input.elements + output.elements};
      if (options_.in_place && collective_.MemberIndex(r)) XCCL_RETURN_IF_ERROR(Overlay(r, memory));
      memory.bytes.assign(static_cast<size_t>((memory.at[2] + scratch.elements) * element_bytes_),
                          kUnwritten);
      if (bytes > 0)
        std::memcpy(&memory.bytes[static_cast<size_t>(memory.at[0] * element_bytes_)],
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
        // A threadblock takes several steps in a row, so that some threadblocks run far ahead of the rest.
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
    for (const RankMemory& memory : memory_) {
      const auto begin = memory.bytes.begin() + memory.at[1] * element_bytes_;
      outputs.emplace_back(begin, begin + memory.layout[1].elements * element_bytes_);
    }
    return outputs;
  }

 private:
  // Lays input and output over each other.
  Status Overlay(Rank r, RankMemory& memory) {
    const std::optional<int32_t> shift = InPlaceShift(collective_, r);
    if (!shift) return InvalidInput(fmt::format("interpret: {} has no in-place form", collective_.name()));
    const auto& [input, output, scratch] = memory.layout;
    const auto begin = [](const BufferLayout& layout, int32_t slot) {
      return slot < static_cast<int32_t>(layout.begin.size()) ? layout.begin[static_cast<size_t>(slot)]
                                                              : layout.elements;
    };
    const int64_t input_at = begin(output, std::max(*shift, 0)),
                  output_at = begin(input, std::max(-*shift, 0));
    memory.at = {input_at, output_at, std::max(input_at + input.elements, output_at + output.elements)};
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
    const size_t buffer = static_cast<size_t>(operand.buffer), slot = static_cast<size_t>(operand.slot + k);
    const BufferLayout& layout = memory.layout[buffer];
    const Slice slice = SliceOf(sizes_.ChunkElements(layout.chunk[slot]), element_bytes_, passes_, pass);
    return std::span(memory.bytes)
        .subspan(static_cast<size_t>((memory.at[buffer] + layout.begin[slot] + slice.begin) * element_bytes_),
                 static_cast<size_t>((slice.end - slice.begin) * element_bytes_));
  }

  // Takes the next message of every connection.
  std::vector<Bytes> Take(std::span<const int32_t> connections) {
    std::vector<Bytes> messages;
    for (int32_t connection : connections) {
      auto& queue = under_way_[static_cast<size_t>(connection)];
      messages.push_back(std::move(queue.front()));
      queue.pop_front();
    }
    return messages;
  }

  // The reduction of all operands in this order, rounded once.
  Bytes Reduced(const std::vector<std::span<const std::byte>>& operands) const {
    Bytes value(operands.front().begin(), operands.front().end());
    std::vector<const void*> members;
    for (const std::span<const std::byte> operand : operands) members.push_back(operand.data());
    if (members.size() > 1)
      ReduceMembersReference(options_.type, options_.op, value.data(), members, Elements(value));
    return value;
  }

  void Step(int32_t block) {
    BlockProgress& state = blocks_[static_cast<size_t>(block)];
    const Instruction& i = Next(block);
    RankMemory& memory = memory_[index_.BlockRank(block)];
    std::vector<Bytes> messages;
    if (Receives(i.op)) messages = Take(index_.RecvConnections(block));
    Bytes sent;
    size_t taken = 0;
    for (int32_t k = 0; k < i.count && i.op != Opcode::kNop; ++k) {
      const Operand& sized = WritesDestination(i.op) ? i.dst : i.src;
      const size_t bytes = SliceAt(memory, sized, k, state.pass).size();
      std::vector<std::span<const std::byte>> received;
      for (const Bytes& message : messages) received.push_back(std::span(message).subspan(taken, bytes));
      taken += bytes;
      const Bytes value = Combine(i, memory, k, state.pass, std::move(received),
                                  FanInOf(program_, index_.threadblock(block)));
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

  // The result of an instruction for one chunk.
  Bytes Combine(const Instruction& i, RankMemory& memory, int32_t k, int32_t pass,
                std::vector<std::span<const std::byte>> operands, const Group* fan_in) {
    const int32_t n = collective_.num_members();
    Bytes local, received;
    if (ReadsSource(i.op)) {
      const std::span<std::byte> source = SliceAt(memory, i.src, k, pass);
      local.assign(source.begin(), source.end());
      if (i.first) ScaleReference(options_.type, options_.op, n, local.data(), local.data(), Elements(local));
      if (!Receives(i.op)) {
        if (i.op == Opcode::kReduce) operands.push_back(SliceAt(memory, i.dst, k, pass));
        operands.push_back(local);
      } else if (fan_in != nullptr) {
        operands.insert(operands.begin() + fan_in->own, local);
      } else {
        received = Reduced(operands);
        operands = {local, received};
      }
    }
    Bytes value = Reduced(operands);
    if (i.final) FinishReference(options_.type, options_.op, n, value.data(), Elements(value));
    return value;
  }
  int64_t Elements(const Bytes& bytes) const { return static_cast<int64_t>(bytes.size()) / element_bytes_; }

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
