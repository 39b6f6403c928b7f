#include "runtime/cpu/run_program.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "runtime/testing/ring_programs.h"

namespace xccl {
namespace {

RunOptions Quick(std::vector<int64_t> sizes) {
  RunOptions options;
  options.sizes_bytes = std::move(sizes);
  options.iterations = 1;
  options.warmup = 1;
  return options;
}

void ExpectRight(const StatusOr<std::vector<RunRow>>& rows, size_t count) {
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(rows->size(), count);
  for (const RunRow& row : *rows) {
    EXPECT_EQ(row.wrong, 0) << row.size_bytes << " in place " << row.in_place;
    EXPECT_EQ(row.out_of_bounds, 0) << row.size_bytes << " in place " << row.in_place;
  }
}

TEST(RunProgram, RingsOnThreads) {
  for (int32_t ranks : {1, 2, 3, 5, 8}) {
    SCOPED_TRACE(ranks);
    for (int32_t slots : {2, 5}) {
      ExpectRight(
          RunProgram(RingAllreduce(ranks, slots), AllMembers(CollectiveKind::kAllreduce, ranks, ranks),
                     Quick({0, 4, 1000, 1 << 20})),
          8);
      ExpectRight(RunProgram(RingAllgather(ranks, slots), AllMembers(CollectiveKind::kAllgather, ranks),
                             Quick({0, 1000, 1 << 20})),
                  6);
    }
  }
}

TEST(RunProgram, RingsOnProcesses) {
  for (int32_t ranks : {1, 2, 7}) {
    SCOPED_TRACE(ranks);
    RunOptions options = Quick({1000, 1 << 20});
    options.processes = true;
    ExpectRight(
        RunProgram(RingAllreduce(ranks), AllMembers(CollectiveKind::kAllreduce, ranks, ranks), options), 4);
  }
}

TEST(RunProgram, ManyPassesThroughSmallSlots) {
  ExpectRight(RunProgram(RingAllreduce(3), AllMembers(CollectiveKind::kAllreduce, 3, 3), Quick({1 << 20}),
                         {.wiring = {.slot_bytes = 4096}}),
              2);
}

TEST(RunProgram, EveryTypeAndOperator) {
  for (DataType type : AllDataTypes()) {
    for (ReduceOp op : AllReduceOps()) {
      for (int32_t ranks : {1, 3, 9}) {
        SCOPED_TRACE(std::string(ToString(type)) + " " + std::string(ToString(op)));
        RunOptions options = Quick({9001});
        options.type = type;
        options.op = op;
        ExpectRight(
            RunProgram(RingAllreduce(ranks), AllMembers(CollectiveKind::kAllreduce, ranks, ranks), options),
            2);
      }
    }
  }
}

TEST(RunProgram, FindsDataInTheWrongPlace) {
  // Rank 2 of the allgather stores rank 0's part where rank 1's belongs, and the other way round.
  Program program = RingAllgather(3);
  std::vector<Instruction>& list = program.ranks[Rank(2)].threadblocks[0].instructions;
  std::swap(list[2].dst, list[3].dst);
  RunOptions options = Quick({3 * 4000});
  options.in_place = false;
  const StatusOr<std::vector<RunRow>> rows =
      RunProgram(program, AllMembers(CollectiveKind::kAllgather, 3), options);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ((*rows)[0].wrong, 2000);
}

TEST(RunProgram, FindsAMissingContribution) {
  for (DataType type : AllDataTypes()) {
    Program program = RingAllreduce(3);
    for (Instruction& instruction : program.ranks[Rank(1)].threadblocks[0].instructions) {
      // Its own input is not added.
      if (instruction.op == Opcode::kRecvReduceCopySend) instruction.op = Opcode::kRecvCopySend;
    }
    RunOptions options = Quick({3 * 4096});
    options.type = type;
    options.in_place = false;
    const StatusOr<std::vector<RunRow>> rows =
        RunProgram(program, AllMembers(CollectiveKind::kAllreduce, 3, 3), options);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_GT((*rows)[0].wrong, 0) << ToString(type);
  }
}

// Rank 0 adds chunk 0 up for rank 3 in one block, with its own value at every place, and sends chunk 1 as it
// is from the same block. Ranks 1 and 2 send chunk 1 to rank 3 themselves.
TEST(RunProgram, ABlockThatAddsUpAlsoSendsWhatItHas) {
  for (int32_t own = 0; own <= 2; ++own) {
    SCOPED_TRACE(own);
    Program program;
    program.ranks = IdVector<Rank, RankProgram>(4);
    program.in_place = true;
    for (const auto& [src, dst] : {std::pair{0, 3}, {1, 0}, {1, 3}, {2, 0}, {2, 3}})
      program.connections.push_back({Rank(src), Rank(dst), 0, {}});
    program.groups = {{Group::Kind::kFanIn, Rank(0), {Rank(1), Rank(2)}, 0, {}, own}};
    const auto instruction = [](Opcode op, int32_t chunk) {
      Instruction made;
      made.op = op;
      made.count = 1;
      made.src = {BufferKind::kInput, chunk};
      made.first = true;
      return made;
    };
    Threadblock adds;
    adds.recv_group = 0;
    adds.send_peer = Rank(3);
    adds.instructions = {instruction(Opcode::kRecvReduceSend, 0), instruction(Opcode::kSend, 1)};
    program.ranks[Rank(0)].threadblocks = {adds};
    program.dependencies = {{0, 1}, {1, 0}};
    for (const Rank from : {Rank(1), Rank(2)}) {
      for (int32_t chunk = 0; chunk < 2; ++chunk) {
        Threadblock gives;
        gives.send_peer = Rank(chunk == 0 ? 0 : 3);
        gives.instructions = {instruction(Opcode::kSend, chunk)};
        program.ranks[from].threadblocks.push_back(gives);
      }
    }
    for (int32_t from = 0; from < 3; ++from) {
      Threadblock takes;
      takes.recv_peer = Rank(from);
      for (int32_t chunk = from == 0 ? 0 : 1; chunk < 2; ++chunk) {
        Instruction& add = takes.instructions.emplace_back(instruction(Opcode::kRecvReduceCopy, chunk));
        add.dst = {BufferKind::kOutput, chunk};
        if (from > 0) add.src = add.dst;
        add.first = from == 0;
        add.final = chunk == 0 || from == 2;
        add.dep_first = from > 0 ? from - 1 : 0;
        add.dep_count = from > 0 ? 1 : 0;
      }
      program.ranks[Rank(3)].threadblocks.push_back(takes);
    }
    CollectiveSpec spec;
    spec.kind = CollectiveKind::kReduce;
    spec.ranks = {Rank(0), Rank(1), Rank(2), Rank(3)};
    spec.root = Rank(3);
    const Collective collective = Collective::Create(spec).value().WithChunks(2);
    // A sum is lent; what avg scales goes through a slot.
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
      RunOptions options = Quick({4, 1000, 90000});
      options.op = op;
      ExpectRight(RunProgram(program, collective, options, {.wiring = {.slot_bytes = 4096}}), 6);
    }
  }
}

TEST(RunProgram, AProgramThatCannotGoOnSaysWhere) {
  Program program = RingAllgather(2);
  program.ranks[Rank(0)].threadblocks[0].instructions.erase(
      program.ranks[Rank(0)].threadblocks[0].instructions.begin() + 1);
  for (bool processes : {false, true}) {
    RunOptions options = Quick({8000});
    options.processes = processes;
    options.time_limit = std::chrono::milliseconds(200);
    EXPECT_EQ(RunProgram(program, AllMembers(CollectiveKind::kAllgather, 2), options).status().message(),
              "rank 1: threadblock 0, instruction 2 (recv), pass 1 of 1: expected message 1 of rank 0 on "
              "channel 0, saw 0; nothing moved for 200 ms");
  }
}

TEST(RunProgram, ThreadblocksThatWaitForEachOtherSaySo) {
  Program program = RingAllgather(2);
  std::vector<Threadblock>& blocks = program.ranks[Rank(0)].threadblocks;
  const Instruction copy = blocks[0].instructions[0];
  blocks.emplace_back().instructions = {copy};
  program.dependencies = {{1, 0}, {0, 0}};
  for (int32_t b : {0, 1}) {
    Instruction& first = blocks[static_cast<size_t>(b)].instructions[0];
    first.dep_first = b;
    first.dep_count = 1;
  }
  RunOptions options = Quick({8000});
  options.time_limit = std::chrono::milliseconds(200);
  const std::string message =
      RunProgram(program, AllMembers(CollectiveKind::kAllgather, 2), options).status().message();
  EXPECT_NE(message.find("nothing moved for 200 ms"), std::string::npos) << message;
}

TEST(RunProgram, RefusesWhatMemoryCannotHold) {
  const auto refusal = [](int64_t size, const CpuRunOptions& cpu) {
    return RunProgram(RingAllreduce(2), AllMembers(CollectiveKind::kAllreduce, 2, 2), Quick({size}), cpu)
        .status();
  };
  EXPECT_EQ(refusal(int64_t{1} << 20, {.memory_limit = 1 << 20}),
            InvalidInput("allreduce of 1048576 bytes on 2 ranks: needs 4731136 bytes of memory; 1048576 "
                         "are free; hint: --sizes"));
  EXPECT_EQ(refusal(1024, {.wiring = {.memory_limit = 1000}}),
            InvalidInput("2 connections of 2 slots of 4160 bytes need 16640 bytes; the limit is 1000 bytes"));
}

}  // namespace
}  // namespace xccl
