#include "runtime/testing/ring_programs.h"

namespace xccl {
namespace {

Operand In(int32_t slot) { return {BufferKind::kInput, slot}; }
Operand Out(int32_t slot) { return {BufferKind::kOutput, slot}; }

Instruction Make(Opcode op, Operand src, Operand dst = {}) {
  Instruction instruction;
  instruction.op = op;
  instruction.count = 1;
  instruction.src = src;
  instruction.dst = dst;
  return instruction;
}

Program Empty(int32_t ranks, int32_t slots) {
  Program program;
  program.in_place = true;
  program.slots = slots;
  program.ranks.resize(static_cast<size_t>(ranks));
  for (int32_t r = 0; r < ranks; ++r) {
    Threadblock block;
    if (ranks > 1) {
      block.send_peer = Rank((r + 1) % ranks);
      block.recv_peer = Rank((r + ranks - 1) % ranks);
    }
    if (ranks > 1) program.connections.push_back({Rank(r), *block.send_peer, 0, {}});
    program.ranks[Rank(r)].threadblocks.push_back(std::move(block));
  }
  return program;
}

}  // namespace

Collective AllMembers(CollectiveKind kind, int32_t ranks, int32_t chunks) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  StatusOr<Collective> collective = Collective::Create(std::move(spec));
  XCCL_CHECK(collective.ok());
  return collective->WithChunks(chunks);
}

Program RingAllgather(int32_t ranks, int32_t slots) {
  Program program = Empty(ranks, slots);
  for (int32_t r = 0; r < ranks; ++r) {
    std::vector<Instruction>& list = program.ranks[Rank(r)].threadblocks[0].instructions;
    list.push_back(Make(Opcode::kCopy, In(0), Out(r)));
    if (ranks > 1) list.push_back(Make(Opcode::kSend, In(0)));
    for (int32_t step = 1; step < ranks; ++step)
      list.push_back(Make(step + 1 < ranks ? Opcode::kRecvCopySend : Opcode::kRecv, In(0),
                          Out((r + ranks - step) % ranks)));
  }
  return program;
}

Program RingAllreduce(int32_t ranks, int32_t slots) {
  Program program = Empty(ranks, slots);
  for (int32_t r = 0; r < ranks; ++r) {
    std::vector<Instruction>& list = program.ranks[Rank(r)].threadblocks[0].instructions;
    const auto chunk_at = [&](int32_t step) { return (r + 2 * ranks - 1 - step) % ranks; };
    if (ranks > 1) list.push_back(Make(Opcode::kSend, In(chunk_at(0))));
    for (int32_t step = 1; step + 1 < ranks; ++step)
      list.push_back(Make(Opcode::kRecvReduceSend, In(chunk_at(step))));
    list.push_back(Make(ranks > 1 ? Opcode::kRecvReduceCopySend : Opcode::kCopy, In(r), Out(r)));
    for (Instruction& instruction : list) instruction.first = true;
    list.back().final = true;
    for (int32_t step = 0; step + 1 < ranks; ++step)
      list.push_back(
          Make(step + 2 < ranks ? Opcode::kRecvCopySend : Opcode::kRecv, In(0), Out(chunk_at(step))));
  }
  return program;
}

Program SwapAllreduce() {
  Program program = Empty(2, 2);
  for (int32_t r = 0; r < 2; ++r) {
    RankProgram& rank = program.ranks[Rank(r)];
    rank.scratch = {ChunkId(0)};
    const Operand scratch{BufferKind::kScratch, 0};
    rank.threadblocks[0].instructions = {Make(Opcode::kSend, In(0)), Make(Opcode::kRecv, In(0), scratch),
                                         Make(Opcode::kCopy, In(0), Out(0)),
                                         Make(Opcode::kReduce, scratch, Out(0))};
  }
  return program;
}

}  // namespace xccl
