// Plans of MSCCL++ by hand, in the style of its own language, for tests of their reader.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "interchange/common/foreign.h"
#include "interchange/mscclpp/file.h"
#include "interchange/mscclpp/read.h"
#include "ir/program.h"

namespace xccl {

using mscclpp::Block;
using mscclpp::ChannelType;
using mscclpp::File;
using mscclpp::Gpu;
using mscclpp::Op;
using mscclpp::OpName;
using mscclpp::Piece;
using mscclpp::WriteFile;

inline Piece Local(BufferKind buffer, int64_t index, int64_t size = 1) {
  return {Piece::Where::kLocal, buffer, 0, index, size};
}
inline Piece Remote(int32_t id, int64_t index, int64_t size = 1) {
  return {Piece::Where::kRemote, BufferKind::kInput, id, index, size};
}
inline Op Sync(OpName name, std::vector<int32_t> channels) {
  return {.name = name, .channels = std::move(channels), .type = ChannelType::kMemory};
}
inline Op Data(OpName name, std::vector<Piece> src, std::vector<Piece> dst) {
  return {.name = name, .src = std::move(src), .dst = std::move(dst), .type = ChannelType::kMemory};
}
inline constexpr BufferKind kIn = BufferKind::kInput, kOut = BufferKind::kOutput,
                            kScratch = BufferKind::kScratch;

// Every two ranks are joined by one memory channel. A rank's remote buffers are the other ranks' buffers of
// kind `remote`, in order of ranks.
inline File AllToAll(std::string collective, int32_t ranks, int64_t input, int64_t output, int64_t scratch,
                     BufferKind remote) {
  File file;
  file.collective = std::move(collective);
  for (int32_t r = 0; r < ranks; ++r) {
    Gpu& gpu = file.gpus.emplace_back();
    gpu.input = input;
    gpu.output = output;
    gpu.scratch = scratch;
    Block& block = gpu.blocks.emplace_back();
    for (int32_t p = 0; p < ranks; ++p) {
      if (p == r) continue;
      block.channels[0].push_back(static_cast<int32_t>(gpu.peers[0].size()));
      block.remotes[0].push_back(static_cast<int32_t>(gpu.remotes.size()));
      gpu.peers[0].push_back(p);
      gpu.remotes.push_back({p, remote, {ChannelType::kMemory}});
    }
  }
  return file;
}
inline std::vector<int32_t> All(int32_t n) {
  std::vector<int32_t> all;
  for (int32_t i = 0; i < n; ++i) all.push_back(i);
  return all;
}

// Every rank reads its part of all inputs, adds it up, and writes the sum to all: in place.
inline File ReadAndReduce(int32_t ranks) {
  File file = AllToAll("allreduce", ranks, ranks, ranks, 0, kIn);
  file.in_place = true;
  for (int32_t r = 0; r < ranks; ++r) {
    std::vector<Op>& ops = file.gpus[static_cast<size_t>(r)].blocks[0].ops;
    Op reduce = Data(OpName::kRres, {Local(kIn, r)}, {Local(kIn, r)});
    reduce.sums = true;
    for (int32_t p = 0; p + 1 < ranks; ++p) {
      reduce.src.push_back(Remote(p, r));
      reduce.dst.push_back(Remote(p, r));
    }
    ops = {Sync(OpName::kRlxSignal, All(ranks - 1)), Sync(OpName::kRlxWait, All(ranks - 1)), {}, reduce, {},
           Sync(OpName::kSignal, All(ranks - 1)),    Sync(OpName::kWait, All(ranks - 1))};
  }
  return file;
}

// Packets to all, added up and sent on as they come.
inline File AllPairsOfPackets(int32_t ranks) {
  File file = AllToAll("allreduce", ranks, ranks, ranks, 2 * ranks, kScratch);
  file.packets = file.double_scratch = true;
  for (int32_t r = 0; r < ranks; ++r) {
    std::vector<Op>& ops = file.gpus[static_cast<size_t>(r)].blocks[0].ops;
    const auto peer = [&](int32_t p) { return p < r ? p : p + 1; };
    for (int32_t p = 0; p + 1 < ranks; ++p)
      ops.push_back(Data(OpName::kPpkt, {Local(kIn, peer(p))}, {Remote(p, r)}));
    Op reduce = Data(OpName::kRespkt, {Local(kIn, r)}, {Local(kOut, r)});
    for (int32_t p = 0; p + 1 < ranks; ++p) {
      reduce.src.push_back(Local(kScratch, peer(p)));
      reduce.dst.push_back(Remote(p, ranks + r));
    }
    ops.push_back(reduce);
    for (int32_t p = 0; p + 1 < ranks; ++p) {
      ops.push_back(Data(OpName::kUpkt, {Local(kScratch, ranks + peer(p))}, {Local(kOut, peer(p))}));
      ops.back().type = ChannelType::kNone;
    }
  }
  return file;
}

// Two threadblocks put half of everything each, meet, and the first signals.
inline File GroupsOfBlocks(int32_t ranks) {
  File file = AllToAll("allgather", ranks, 1, ranks, 0, kOut);
  for (int32_t r = 0; r < ranks; ++r) {
    Gpu& gpu = file.gpus[static_cast<size_t>(r)];
    gpu.blocks.push_back(gpu.blocks[0]);
    for (int32_t half = 0; half < 2; ++half) {
      std::vector<Op>& ops = gpu.blocks[static_cast<size_t>(half)].ops;
      std::vector<Op> puts = {Data(OpName::kCopy, {Local(kIn, 0)}, {Local(kOut, r)})};
      puts[0].type = ChannelType::kNone;
      for (int32_t p = 0; p + 1 < ranks; ++p)
        puts.push_back(Data(OpName::kPut, {Local(kIn, 0)}, {Remote(p, r)}));
      for (Op& op : puts) {
        op.group_block = half;
        op.group_size = 2;
      }
      if (half == 0) ops = {Sync(OpName::kSignal, All(ranks - 1)), Sync(OpName::kWait, All(ranks - 1))};
      Op meet{.name = OpName::kBarrier, .barrier = 0, .barrier_blocks = 2};
      ops.push_back(meet);
      ops.insert(ops.end(), puts.begin(), puts.end());
      ops.push_back(meet);
      if (half == 0) {
        ops.push_back(Sync(OpName::kSignal, All(ranks - 1)));
        ops.push_back(Sync(OpName::kWait, All(ranks - 1)));
      }
    }
  }
  return file;
}

// A switch adds the inputs and stores them in all outputs.
inline File OverASwitch(int32_t ranks) {
  File file = AllToAll("allreduce", ranks, ranks, ranks, 0, kIn);
  file.in_place = true;
  for (int32_t r = 0; r < ranks; ++r) {
    Gpu& gpu = file.gpus[static_cast<size_t>(r)];
    gpu.switches.push_back({kIn, ranks, All(ranks)});
    gpu.blocks[0].channels[2] = {0};
    Op reduce{.name = OpName::kGlres, .type = ChannelType::kSwitch, .sums = true};
    reduce.src = reduce.dst = {{Piece::Where::kSwitch, kIn, 0, r, 1}};
    gpu.blocks[0].ops = {
        Sync(OpName::kRlxSignal, All(ranks - 1)), Sync(OpName::kRlxWait, All(ranks - 1)), {}, reduce, {},
        Sync(OpName::kSignal, All(ranks - 1)),    Sync(OpName::kWait, All(ranks - 1))};
  }
  return file;
}

inline std::string Refused(const File& file) {
  return ReadMscclppJson(WriteFile(file), {.file = "p"}).status().message();
}
// The fault that the reader finds in calls that follow each other; empty: none.
inline std::string WrongInARow(const File& file) {
  const StatusOr<Imported> read = ReadMscclppJson(WriteFile(file), {.file = "p"});
  return read.ok() ? read->in_a_row : "refused: " + read.status().message();
}
inline std::vector<Op>& Ops(File& file, size_t rank = 0) { return file.gpus[rank].blocks[0].ops; }

// Rank r puts its input into output r of the other rank.
inline File Swap() {
  File file = AllToAll("allgather", 2, 1, 2, 2, kOut);
  for (int32_t r = 0; r < 2; ++r) {
    Op copy = Data(OpName::kCopy, {Local(kIn, 0)}, {Local(kOut, r)});
    copy.type = ChannelType::kNone;
    Op put = Data(OpName::kPut, {Local(kIn, 0)}, {Remote(0, r)});
    put.channels = {0};
    file.gpus[static_cast<size_t>(r)].blocks[0].ops = {
        Sync(OpName::kSignal, {0}), Sync(OpName::kWait, {0}), {},  put, {},
        Sync(OpName::kSignal, {0}), Sync(OpName::kWait, {0}), copy};
  }
  return file;
}

}  // namespace xccl
