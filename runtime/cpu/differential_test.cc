// Compares the executor with the interpreter bit by bit, on numbers whose sums depend on their order.
// RunProgram's own check compares it with the postcondition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "ir/interpret/interpret.h"
#include "ir/lower/testing/checked.h"
#include "ir/testing/programs.h"
#include "ir/testing/trees.h"
#include "runtime/cpu/launch.h"
#include "runtime/cpu/run_program.h"
#include "runtime/executor.h"

namespace xccl {
namespace {

using Buffers = std::vector<std::vector<std::byte>>;

struct Lowered {
  std::string name;
  Collective collective;
  Program program;
};

std::vector<Lowered> Programs(CollectiveKind kind, int32_t ranks) {
  std::vector<Lowered> programs;
  const Topology topology = FullMesh(ranks);
  for (Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
    const Collective collective = MakeCollective(kind, ranks);
    const std::optional<Schedule> schedule = HandSchedule(algorithm, collective, topology);
    if (!schedule) continue;
    StatusOr<Program> program = LowerChecked(*schedule, collective, topology);
    XCCL_CHECK(program.ok());
    programs.push_back({std::string(ToString(kind)) + " " + std::string(ToString(algorithm)) + " on " +
                            std::to_string(ranks),
                        collective, std::move(*program)});
  }
  if (ranks == 3 || ranks == 8) {
    const Topology trees = ranks % 2 == 0 ? TreeLeaves(ranks / 2, 1) : TreeSwitch(ranks);
    const Collective collective = MakeCollective(kind, ranks).WithChunks(2);
    const Schedule schedule = TreeSchedule(collective, trees, static_cast<uint64_t>(ranks));
    programs.push_back({std::string(ToString(kind)) + " trees on " + std::to_string(ranks), collective,
                        LowerChecked(schedule, collective, trees).value()});
  }
  return programs;
}

// Numbers near one, or any bits for integers.
Buffers RandomInputs(const Lowered& lowered, const InterpretOptions& options) {
  const CollectiveSizes sizes(lowered.collective, options.size_bytes, SizeOf(options.type));
  Random random(7);
  Buffers inputs(static_cast<size_t>(lowered.program.ranks.size()));
  for (int32_t r = 0; r < lowered.program.ranks.size(); ++r) {
    const BufferLayout layout =
        LayoutOf(lowered.program, lowered.collective, sizes, Rank(r), BufferKind::kInput);
    std::vector<std::byte>& input = inputs[static_cast<size_t>(r)];
    input.resize(static_cast<size_t>(layout.elements * SizeOf(options.type)));
    for (std::byte& byte : input) byte = std::byte(random.Below(256));
    for (int64_t i = 0; i < layout.elements && options.type == DataType::kFloat; ++i) {
      const float value = static_cast<float>(random.Unit() - 0.5);
      std::memcpy(input.data() + 4 * i, &value, 4);
    }
    for (int64_t i = 0; i < layout.elements && options.type == DataType::kHalf; ++i) {
      const uint16_t value = FloatToHalf(static_cast<float>(random.Unit() - 0.5));
      std::memcpy(input.data() + 2 * i, &value, 2);
    }
  }
  return inputs;
}

// Output bytes of every rank, from threads.
Buffers Execute(const Lowered& lowered, const Buffers& inputs, const InterpretOptions& options,
                int64_t slot_bytes) {
  const Program* programs[] = {&lowered.program};
  WiringOptions wiring_options;
  wiring_options.slot_bytes = slot_bytes;
  const Wiring wiring = WiringOf(programs, wiring_options).value();
  const SharedRegion region = SharedRegion::Create(wiring, Sharing::kThreads).value();
  const CollectiveSizes sizes(lowered.collective, options.size_bytes, SizeOf(options.type));
  const int32_t passes = PassesFor(lowered.program, lowered.collective, sizes, wiring.slot_bytes).value();
  const std::vector<Rank> ranks = AllRanks(wiring.ranks);
  Buffers outputs(ranks.size());
  const Status status = RunRanks(region, ranks, std::chrono::seconds(10), [&](Endpoint& endpoint) -> Status {
    const Rank rank = endpoint.rank();
    XCCL_ASSIGN_OR_RETURN(const RankWork work, PrepareRank(lowered.program, lowered.collective, sizes, wiring,
                                                           rank, passes, options.in_place, true));
    int64_t input_at = 0, output_at = work.input_bytes;
    if (options.in_place && lowered.collective.InPlaceOf(rank)) {
      const auto overlap = lowered.collective.InPlaceOf(rank);
      const auto before = [&](const std::vector<PartId>& parts, int32_t count) {
        int64_t bytes = 0;
        for (int32_t p = 0; p < count; ++p) bytes += sizes.PartBytes(parts[static_cast<size_t>(p)]);
        return bytes;
      };
      input_at = before(lowered.collective.OutputParts(rank), overlap->input_at_output_part);
      output_at = before(lowered.collective.InputParts(rank), overlap->output_at_input_part);
    }
    std::vector<std::byte> memory(
        static_cast<size_t>(std::max(input_at + work.input_bytes, output_at + work.output_bytes)),
        std::byte{0xCB});
    std::vector<std::byte> scratch(static_cast<size_t>(work.scratch_bytes));
    std::copy(inputs[rank.index()].begin(), inputs[rank.index()].end(), memory.begin() + input_at);
    XCCL_RETURN_IF_ERROR(ExecuteRank(work, {options.type, options.op, std::chrono::seconds(10)},
                                     {memory.data() + input_at, memory.data() + output_at, scratch.data()},
                                     endpoint));
    outputs[rank.index()].assign(memory.begin() + output_at, memory.begin() + output_at + work.output_bytes);
    return endpoint.Barrier(std::chrono::seconds(10));
  });
  EXPECT_EQ(status.message(), "") << lowered.name;
  return outputs;
}

void ExpectAsInterpreted(const Lowered& lowered, InterpretOptions options, int64_t slot_bytes) {
  if (options.in_place && !lowered.program.in_place) return;
  const Buffers inputs = RandomInputs(lowered, options);
  const StatusOr<Buffers> expected = Interpret(lowered.program, lowered.collective, inputs, options);
  ASSERT_TRUE(expected.ok()) << lowered.name << ": " << expected.status().message();
  const Buffers found = Execute(lowered, inputs, options, slot_bytes);
  ASSERT_EQ(found.size(), expected->size());
  for (size_t r = 0; r < found.size(); ++r)
    EXPECT_EQ(found[r] == (*expected)[r], true)
        << lowered.name << " " << ToString(options.type) << " " << ToString(options.op) << " of "
        << options.size_bytes << " bytes, in place " << options.in_place << ", rank " << r;
}

TEST(Executor, DoesWhatTheInterpreterDoes) {
  for (CollectiveKind kind : AllNamedCollectives()) {
    for (int32_t ranks : {1, 2, 3, 5, 7, 8}) {
      for (const Lowered& lowered : Programs(kind, ranks)) {
        for (bool in_place : {false, true}) {
          for (int64_t size : {0, 10001}) {
            InterpretOptions options;
            options.size_bytes = size;
            options.in_place = in_place;
            ExpectAsInterpreted(lowered, options, 4096);
          }
        }
      }
    }
  }
}

TEST(Executor, DoesSoForEveryTypeAndOperator) {
  for (CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter, CollectiveKind::kReduce}) {
    for (const Lowered& lowered : Programs(kind, 3)) {
      for (DataType type : AllDataTypes()) {
        for (ReduceOp op : AllReduceOps()) {
          // Sums of random bits of these make NaNs, whose bits are the processor's choice.
          if (type == DataType::kDouble || type == DataType::kBfloat16) continue;
          InterpretOptions options;
          options.type = type;
          options.op = op;
          options.size_bytes = 2500;
          ExpectAsInterpreted(lowered, options, 4096);
        }
      }
    }
  }
}

TEST(RunProgram, EveryCollectiveIsRightOnThreadsAndProcesses) {
  for (CollectiveKind kind : AllNamedCollectives()) {
    for (int32_t ranks : {1, 3, 6}) {
      for (const Lowered& lowered : Programs(kind, ranks)) {
        for (bool processes : {false, true}) {
          RunOptions options;
          options.sizes_bytes = {1000, 90001};
          options.warmup = options.iterations = 1;
          options.processes = processes;
          options.op = kind == CollectiveKind::kReduce ? ReduceOp::kAvg : ReduceOp::kSum;
          const StatusOr<std::vector<RunRow>> rows =
              RunProgram(lowered.program, lowered.collective, options, {.wiring = {.slot_bytes = 8192}});
          ASSERT_TRUE(rows.ok()) << lowered.name << ": " << rows.status().message();
          for (const RunRow& row : *rows) {
            EXPECT_EQ(row.wrong, 0) << lowered.name << " of " << row.size_bytes << " in place "
                                    << row.in_place;
            EXPECT_EQ(row.out_of_bounds, 0) << lowered.name << " in place " << row.in_place;
          }
        }
      }
    }
  }
}

TEST(RunProgram, SixtyFourRanksOfSixtyThreePeersOnFewCores) {
  for (const Lowered& lowered : Programs(CollectiveKind::kAlltoall, 64)) {
    if (lowered.name.find("direct") == std::string::npos) continue;
    RunOptions options;
    options.sizes_bytes = {16 << 10};
    options.warmup = options.iterations = 0;
    const StatusOr<std::vector<RunRow>> rows = RunProgram(lowered.program, lowered.collective, options);
    ASSERT_TRUE(rows.ok()) << lowered.name << ": " << rows.status().message();
    EXPECT_TRUE(AllRight(*rows)) << lowered.name;
  }
}

}  // namespace
}  // namespace xccl
