// Flattening is one walk over the instructions. Direct sends need one more question: may another instruction
// of the rank overwrite the data while the receiver still reads it? ir/kernel/local_order.h answers it.
#include "runtime/rank_work.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "ir/analysis/rank_clocks.h"
#include "ir/kernel/local_order.h"
#include "runtime/transport/call_signature.h"

namespace xccl {
namespace {

constexpr int64_t kSliceSlack = 32;  // bytes that a slice may exceed an even share by

struct Layouts {
  std::array<BufferLayout, 3> of;
  const BufferLayout& operator[](BufferKind kind) const { return of[static_cast<size_t>(kind)]; }
};

Layouts LayoutsOf(const Program& program, const Collective& collective, const CollectiveSizes& sizes,
                  Rank rank) {
  Layouts layouts;
  for (BufferKind kind : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch})
    layouts.of[static_cast<size_t>(kind)] = LayoutOf(program, collective, sizes, rank, kind);
  return layouts;
}

std::string Place(Rank rank, size_t threadblock, size_t index, Opcode op) {
  return fmt::format("rank {}: threadblock {}, instruction {} ({})", rank.value, threadblock, index,
                     ToString(op));
}

Status CheckOperand(const BufferLayout& layout, const Operand& operand, int32_t count,
                    const std::string& place) {
  if (operand.slot >= 0 && count >= 0 &&
      static_cast<int64_t>(operand.slot) + count <= static_cast<int64_t>(layout.chunk.size()))
    return OkStatus();
  return InvalidInput(fmt::format("{}: slots {}..{}; the buffer has {}", place, operand.slot,
                                  static_cast<int64_t>(operand.slot) + count - 1, layout.chunk.size()));
}

// Marks the sends whose data nothing overwrites any more: every other write to their slots is certainly over
// when they start, by the rank's own order. That order needs this rank's instructions alone, so the cost does
// not grow with the program's other ranks.
void MarkDirectSends(const Program& program, const Collective& collective, bool in_place, RankWork& work) {
  Program own;
  own.ranks.resize(static_cast<size_t>(program.ranks.size()));
  own.dependencies = work.dependencies;
  for (size_t b = 0; b < work.threadblocks.size(); ++b) {
    std::vector<Instruction>& list = own.ranks[work.rank].threadblocks.emplace_back().instructions;
    list = program.ranks[work.rank].threadblocks[b].instructions;
    for (size_t i = 0; i < list.size(); ++i) list[i].dep_first = work.threadblocks[b].steps[i].dep_first;
  }
  const ProgramIndex index(own);
  const std::vector<int32_t> nodes = TopologicalOrder(own, index, ProgramEdges::kLocal);
  if (std::ssize(nodes) < index.size()) return;  // some wait for each other: the executor says which
  const RankClocks order(index, work.rank, nodes);
  const SlotAccesses accesses(program, collective, index, work.rank, in_place);
  int32_t node = 0;
  for (ThreadblockWork& block : work.threadblocks) {
    for (Step& step : block.steps) {
      const Instruction& i = index.instruction(node);
      if (i.op == Opcode::kSend || (Sends(i.op) && WritesDestination(i.op)))
        step.direct = accesses.NothingWritesAfter(node, i.op == Opcode::kSend ? i.src : i.dst, order);
      ++node;
    }
  }
}

Status AddStep(const Instruction& instruction, const std::vector<Dependency>& all_dependencies,
               const Layouts& layouts, const CollectiveSizes& sizes, const std::string& place, RankWork& work,
               ThreadblockWork& made) {
  const bool reads = ReadsSource(instruction.op), writes = WritesDestination(instruction.op);
  const BufferLayout& src = layouts[instruction.src.buffer];
  const BufferLayout& dst = layouts[instruction.dst.buffer];
  if (reads) XCCL_RETURN_IF_ERROR(CheckOperand(src, instruction.src, instruction.count, place));
  if (writes) XCCL_RETURN_IF_ERROR(CheckOperand(dst, instruction.dst, instruction.count, place));
  Step step{.op = instruction.op, .src = instruction.src.buffer, .dst = instruction.dst.buffer};
  step.first = instruction.first;
  step.final = instruction.final;
  step.dep_first = static_cast<int32_t>(work.dependencies.size());
  step.dep_count = instruction.dep_count;
  const auto dependencies = std::span(all_dependencies).subspan(instruction.dep_first, instruction.dep_count);
  work.dependencies.insert(work.dependencies.end(), dependencies.begin(), dependencies.end());
  step.range_first = static_cast<int32_t>(work.ranges.size());
  for (int32_t c = 0; (reads || writes) && c < instruction.count; ++c) {
    ByteRange range;
    const size_t s = static_cast<size_t>(instruction.src.slot) + c,
                 d = static_cast<size_t>(instruction.dst.slot) + c;
    range.elements = sizes.ChunkElements(reads ? src.chunk[s] : dst.chunk[d]);
    if (reads && writes && sizes.ChunkElements(dst.chunk[d]) != range.elements)
      return InvalidInput(fmt::format("{}: reads a chunk of {} elements and writes one of {}", place,
                                      range.elements, sizes.ChunkElements(dst.chunk[d])));
    if (reads) range.src_begin = src.begin[s] * work.element_bytes;
    if (writes) range.dst_begin = dst.begin[d] * work.element_bytes;
    work.ranges.push_back(range);
  }
  step.range_count = static_cast<int32_t>(work.ranges.size()) - step.range_first;
  made.steps.push_back(step);
  return OkStatus();
}

}  // namespace

StatusOr<int32_t> PassesFor(const Program& program, const Collective& collective,
                            const CollectiveSizes& sizes, int64_t slot_bytes) {
  slot_bytes -= kMessageHead;
  int64_t passes = 1;
  for (int32_t r = 0; r < program.ranks.size(); ++r) {
    const RankProgram& rank = program.ranks[Rank(r)];
    if (rank.threadblocks.empty()) continue;
    const Layouts layouts = LayoutsOf(program, collective, sizes, Rank(r));
    for (size_t l = 0; l < rank.threadblocks.size(); ++l) {
      for (size_t i = 0; i < rank.threadblocks[l].instructions.size(); ++i) {
        const Instruction& instruction = rank.threadblocks[l].instructions[i];
        if (!Sends(instruction.op)) continue;
        const Operand& operand = ReadsSource(instruction.op) ? instruction.src : instruction.dst;
        const BufferLayout& layout = layouts[operand.buffer];
        XCCL_RETURN_IF_ERROR(
            CheckOperand(layout, operand, instruction.count, Place(Rank(r), l, i, instruction.op)));
        int64_t padded = 0, bytes = 0;
        for (int32_t c = 0; c < instruction.count; ++c) {
          const int64_t elements = sizes.ChunkElements(layout.chunk[operand.slot + c]);
          padded += PaddedBytes(elements, sizes.element_bytes());
          bytes += elements * sizes.element_bytes();
        }
        if (padded <= slot_bytes) continue;
        const int64_t room = slot_bytes - kSliceSlack * instruction.count;
        if (room <= 0)
          return InvalidInput(fmt::format("{}: {} chunks do not fit a slot of {} bytes",
                                          Place(Rank(r), l, i, instruction.op), instruction.count,
                                          slot_bytes));
        passes = std::max(passes, (bytes + room - 1) / room);
      }
    }
  }
  if (passes > std::numeric_limits<int32_t>::max())
    return InvalidInput(
        fmt::format("{} passes of {} bytes; at most 2^31-1 are supported", passes, slot_bytes));
  return static_cast<int32_t>(passes);
}

StatusOr<RankWork> PrepareRank(const Program& program, const Collective& collective,
                               const CollectiveSizes& sizes, const Wiring& wiring, Rank rank, int32_t passes,
                               bool in_place, bool allow_direct) {
  const Layouts layouts = LayoutsOf(program, collective, sizes, rank);
  RankWork work;
  work.rank = rank;
  work.passes = passes;
  work.members = collective.num_members();
  work.element_bytes = sizes.element_bytes();
  work.input_bytes = layouts[BufferKind::kInput].elements * work.element_bytes;
  work.output_bytes = layouts[BufferKind::kOutput].elements * work.element_bytes;
  work.scratch_bytes = layouts[BufferKind::kScratch].elements * work.element_bytes;
  const RankProgram& rank_program = program.ranks[rank];
  for (size_t l = 0; l < rank_program.threadblocks.size(); ++l) {
    const Threadblock& block = rank_program.threadblocks[l];
    ThreadblockWork made;
    made.channel = block.channel;
    if (const Group* fan_in = FanInOf(program, block)) made.fan_in_own = fan_in->own;
    const auto connect = [&](std::span<const Rank> peers, bool sends, std::vector<int32_t>& connections,
                             std::vector<Rank>& of) {
      of.assign(peers.begin(), peers.end());
      for (Rank peer : peers)
        if (const auto found = wiring.Find({sends ? rank : peer, sends ? peer : rank, block.channel}))
          connections.push_back(*found);
      return connections.size() == peers.size();
    };
    const bool sends = connect(SendPeers(program, block), true, made.send, made.send_peers);
    const bool receives = connect(RecvPeers(program, block), false, made.recv, made.recv_peers);
    if (!sends || !receives)
      return InvalidInput(
          fmt::format("rank {}: threadblock {}: nobody sends what it receives, or receives what it sends",
                      rank.value, l));
    for (size_t i = 0; i < block.instructions.size(); ++i)
      XCCL_RETURN_IF_ERROR(AddStep(block.instructions[i], program.dependencies, layouts, sizes,
                                   Place(rank, l, i, block.instructions[i].op), work, made));
    work.threadblocks.push_back(std::move(made));
  }
  if (allow_direct) MarkDirectSends(program, collective, in_place, work);
  return work;
}

}  // namespace xccl
