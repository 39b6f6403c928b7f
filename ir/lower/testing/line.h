// One small lowering, written out by hand pass by pass: the value that one pass returns is the input of the
// next pass. Two chunks go from rank 0 over rank 1 to rank 2, by links 0 and 1; rank 1 sends each chunk on as
// soon as it has it.
#pragma once

#include <optional>
#include <vector>

#include "ir/collective.h"
#include "ir/lower/fuse.h"
#include "ir/lower/instructions.h"
#include "ir/lower/merge.h"
#include "ir/lower/moves.h"
#include "ir/lower/order.h"
#include "ir/lower/paths.h"
#include "ir/lower/threadblocks.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "ir/testing/graphs.h"
#include "topologies/topology.h"

namespace xccl::lowering {

inline Topology Line() { return testing::MakeGraph("line", 3, 0, {{0, 1}, {1, 2}}); }

inline Collective LineCollective() {
  return testing::MakeCollective(CollectiveKind::kBroadcast, 3, Rank(0)).WithChunks(2);
}

inline Schedule LineSchedule() {
  Schedule schedule;
  schedule.num_chunks = 2;
  schedule.Add(ChunkId(0), 2, Rank(0), Rank(1), testing::Links({0}), TransferOp::kCopy, 0);
  schedule.Add(ChunkId(0), 2, Rank(1), Rank(2), testing::Links({1}), TransferOp::kCopy, 1);
  return schedule;
}

inline Paths LinePaths() {
  return {.paths = {{Rank(0), Rank(1), testing::Links({0})}, {Rank(1), Rank(2), testing::Links({1})}},
          .groups = {},
          .first_of = {0, 1, 2}};
}

// Each link takes 10 ps a chunk.
inline MoveTimes LineTimes() { return {{0, 10, 10, 20}, {10, 20, 20, 30}}; }

inline Move LineMove(int32_t number, int32_t chunk, int32_t path, int32_t feed, int32_t readers) {
  Move move{.chunk = ChunkId(chunk), .src = Rank(path), .dst = Rank(path + 1), .path = path, .step = path};
  move.number = move.bundle = move.group = number;
  move.feed = feed;
  move.readers = readers;
  return move;
}

// Each value of rank 1 is read twice: it is sent on, and it is wanted in the output.
inline Moves LineMoves() {
  return {{LineMove(0, 0, 0, kNoIndex, 2), LineMove(1, 1, 0, kNoIndex, 2), LineMove(2, 0, 1, 0, 1),
           LineMove(3, 1, 1, 1, 1)},
          {{Rank(0), ChunkId(0)}, {Rank(0), ChunkId(1)}}};
}

inline Threadblock Block(std::optional<Rank> recv, std::optional<Rank> send, int32_t channel = 0,
                         std::vector<Instruction> instructions = {}) {
  return {send, recv, std::nullopt, std::nullopt, channel, std::move(instructions)};
}
inline Instruction Op(Opcode op, int32_t count, const Operand& src, const Operand& dst) {
  return {op, count, src, dst};
}
inline constexpr std::nullopt_t kNobody = std::nullopt;
inline constexpr Operand kNone, kIn{BufferKind::kInput, 0}, kOut{BufferKind::kOutput, 0};

constexpr int32_t Sent(int32_t move) { return 2 * move; }
constexpr int32_t Received(int32_t move) { return 2 * move + 1; }

inline Order LineOrder() {
  return {.events = {Sent(0), Received(0), Sent(1), Sent(2), Received(1), Received(2), Sent(3), Received(3)},
          .send_place = {0, 2, 3, 6},
          .recv_place = {1, 4, 5, 7},
          .slots = 1};
}

// Rank 1 has one threadblock for both links.
inline Assignment LineAssignment() {
  Assignment assignment{.channel = {0, 0},
                        .send_block = {0, 0},
                        .recv_block = {0, 0},
                        .forwards_to = {1, kNoIndex},
                        .blocks = IdVector<Rank, std::vector<Threadblock>>(3)};
  assignment.blocks[Rank(0)] = {Block(kNobody, Rank(1))};
  assignment.blocks[Rank(1)] = {Block(Rank(0), Rank(2))};
  assignment.blocks[Rank(2)] = {Block(Rank(1), kNobody)};
  return assignment;
}

inline Fusion LineFusion() { return {{2, 3, kNoIndex, kNoIndex}, {kNoIndex, kNoIndex, 0, 1}}; }
inline Fusion NoFusion(size_t moves) {
  return {std::vector<int32_t>(moves, kNoIndex), std::vector<int32_t>(moves, kNoIndex)};
}

// Both chunks go as one.
inline Runs LineRuns() { return {{kNoIndex, 0, kNoIndex, 2}, {2, 0, 2, 0}, {false, true, false, true}}; }

inline Places LinePlaces() {
  Places places(3);
  places[Rank(0)] = {{0}, {8}};
  places[Rank(1)] = {{4}};
  places[Rank(2)] = {{7}};
  return places;
}

inline Program LineProgram() {
  Program program;
  program.connections = {{Rank(0), Rank(1), 0, testing::Links({0})},
                         {Rank(1), Rank(2), 0, testing::Links({1})}};
  program.ranks = IdVector<Rank, RankProgram>(3);
  program.ranks[Rank(0)].threadblocks = {Block(kNobody, Rank(1), 0, {Op(Opcode::kSend, 2, kIn, kNone)}),
                                         Block(kNobody, kNobody, 0, {Op(Opcode::kCopy, 2, kIn, kOut)})};
  program.ranks[Rank(1)].threadblocks = {
      Block(Rank(0), Rank(2), 0, {Op(Opcode::kRecvCopySend, 2, kNone, kOut)})};
  program.ranks[Rank(2)].threadblocks = {Block(Rank(1), kNobody, 0, {Op(Opcode::kRecv, 2, kNone, kOut)})};
  return program;
}

}  // namespace xccl::lowering
