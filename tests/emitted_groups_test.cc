// Compares emitted code of programs with groups, run on the host, with the interpreter bit by bit. Groups
// are served one member at a time, and by a switch that reduces in the same order.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/interpret/interpret.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "tests/testing/emitted_kernels.h"
#include "tests/testing/group_cases.h"
#include "tests/testing/host_machine.h"
#include "tests/testing/kernel_cases.h"

namespace xccl::testing {
namespace {

constexpr int64_t kSlotBytes = 4096;
const bool kAll = std::getenv("XCCL_LONG") != nullptr;

class Runner {
 public:
  Runner(const KernelCase& of, size_t index, bool with_switch, bool interpreter = false)
      : case_(of),
        with_switch_(with_switch),
        machine_(of.program, of.collective, interpreter ? nullptr : device::kKernels[index],
                 Protocol::kSimple, kSlotBytes, 0, with_switch) {}

  void Expect(const HostLaunch& launch) {
    const Buffers inputs = RandomInputs(case_.program, case_.collective, launch);
    const StatusOr<Buffers> expected = Interpret(
        case_.program, case_.collective, inputs,
        {.type = launch.type, .op = launch.op, .size_bytes = launch.size_bytes, .in_place = launch.in_place});
    ASSERT_TRUE(expected.ok()) << case_.name << ": " << expected.status().message();
    const StatusOr<Buffers> found = machine_.Run(inputs, launch);
    const std::string what = case_.name + " " + std::string(ToString(launch.type)) + " " +
                             std::string(ToString(launch.op)) + " of " + std::to_string(launch.size_bytes) +
                             " bytes, in place " + std::to_string(launch.in_place) + ", scattered " +
                             std::to_string(launch.scattered) + ", switch " + std::to_string(with_switch_) +
                             ", threads " + std::to_string(launch.shape.threads) + ", registered " +
                             std::to_string(launch.registered);
    ASSERT_TRUE(found.ok()) << what << ": " << found.status().message();
    for (size_t r = 0; r < found->size(); ++r)
      ASSERT_TRUE((*found)[r] == (*expected)[r]) << what << ", rank " << r;
  }

 private:
  const KernelCase& case_;
  const bool with_switch_;
  HostMachine machine_;
};

TEST(EmittedGroups, DoWhatTheInterpreterDoes) {
  const std::vector<KernelCase> cases = GroupCases();
  ASSERT_EQ(static_cast<size_t>(device::kNumKernels), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    for (bool with_switch : {false, true}) {
      Runner runner(cases[i], i, with_switch);
      int32_t turn = static_cast<int32_t>(i);
      for (int64_t size : {0, 52, 10012}) {
        for (bool in_place : {false, true}) {
          for (bool scattered : {false, true}) {
            if (!kAll && ++turn % 2 == 0) continue;
            // Instructions without a group may have direct messages.
            runner.Expect(
                {.size_bytes = size, .in_place = in_place, .direct = turn % 4 < 2, .scattered = scattered});
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

// Types and operators alternate on the same slots, so neutral elements change.
TEST(EmittedGroups, DoSoForEveryTypeAndOperator) {
  const std::vector<KernelCase> cases = GroupCases();
  int32_t turn = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    for (bool with_switch : {false, true}) {
      Runner runner(cases[i], i, with_switch);
      for (DataType type : AllDataTypes()) {
        for (ReduceOp op : AllReduceOps()) {
          if (!cases[i].collective.Reduces() && op != ReduceOp::kSum) continue;
          // On up to 3 ranks every pair, else one of seven.
          if (++turn % 7 != 0 && cases[i].program.ranks.size() > 3 && !kAll) continue;
          runner.Expect({.type = type,
                         .op = op,
                         .size_bytes = 1013 * SizeOf(type),
                         .in_place = turn % 2 == 0,
                         .scattered = turn % 5 == 0});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Sums and averages of all types need no other element in the root's own slots than the zeros that are there
// at first, so nothing is filled when they alternate.
TEST(EmittedGroups, SumsOfAllTypesShareANeutralElement) {
  const std::vector<KernelCase> cases = GroupCases();
  const auto at = std::ranges::find(cases, "allreduce fused on 4", &KernelCase::name);
  ASSERT_TRUE(at != cases.end());
  HostMachine machine(at->program, at->collective, device::kKernels[at - cases.begin()], Protocol::kSimple,
                      kSlotBytes, 0, true);
  const auto run = [&](DataType type, ReduceOp op) {
    const HostLaunch launch{.type = type, .op = op, .size_bytes = 4096};
    EXPECT_TRUE(machine.Run(RandomInputs(at->program, at->collective, launch), launch).ok());
    return machine.HoldsNeutral();
  };
  for (const DataType type : AllDataTypes())
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) EXPECT_FALSE(run(type, op)) << ToString(type);
  EXPECT_TRUE(run(DataType::kInt64, ReduceOp::kMin));
  EXPECT_FALSE(run(DataType::kBfloat16, ReduceOp::kSum));
}

TEST(EmittedGroups, DoSoWithRandomDelays) {
  const std::vector<KernelCase> cases = GroupCases();
  for (size_t i = 0; i < cases.size(); ++i) {
    for (bool with_switch : {false, true}) {
      Runner runner(cases[i], i, with_switch);
      runner.Expect({.size_bytes = 3000, .jitter = i + 1});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(EmittedGroups, DoSoWithSeveralThreadsPerBlock) {
  const std::vector<KernelCase> cases = GroupCases();
  for (size_t i = 0; i < cases.size(); ++i) {
    for (bool with_switch : {false, true}) {
      Runner runner(cases[i], i, with_switch, i % 3 == 0);
      for (int64_t size : {52, 10012}) {
        HostLaunch launch{.size_bytes = size, .in_place = i % 2 == 0, .direct = i % 4 < 2};
        launch.shape = i % 4 == 0 ? device::HostShape{4, 2} : device::HostShape{8, 4};
        runner.Expect(launch);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(EmittedGroups, InterpreterKernelDoesTheSame) {
  const std::vector<KernelCase> cases = GroupCases();
  for (size_t i = 0; i < cases.size(); ++i) {
    for (bool with_switch : {false, true}) {
      Runner runner(cases[i], i, with_switch, true);
      for (int64_t size : {52, 10012}) runner.Expect({.size_bytes = size, .in_place = size == 52});
      runner.Expect({.type = DataType::kHalf, .op = ReduceOp::kAvg, .size_bytes = 2222});
      runner.Expect({.type = DataType::kInt8, .op = ReduceOp::kMax, .size_bytes = 1111});
      if (HasFatalFailure()) return;
    }
  }
}

// Only what the switch supports goes through it: multicasts of at least 4 bytes, and reductions of the
// types and operators of multimem.ld_reduce.
TEST(EmittedGroups, UseTheSwitchForWhatItHas) {
  const std::vector<KernelCase> cases = GroupCases();
  const auto reduced = [&](DataType type, ReduceOp op, bool with_switch) {
    for (size_t i = 0; i < cases.size(); ++i) {
      if (cases[i].name != "reduce fused on 5") continue;
      Runner runner(cases[i], i, with_switch);
      const int64_t before = HostMachine::SwitchAccesses();
      runner.Expect({.type = type, .op = op, .size_bytes = 64 * SizeOf(type)});
      return HostMachine::SwitchAccesses() - before;
    }
    return int64_t{-1};
  };
  EXPECT_EQ(reduced(DataType::kFloat, ReduceOp::kSum, false), 0);
  for (DataType type : AllDataTypes()) {
    for (ReduceOp op : AllReduceOps()) {
      const bool integer = !IsFloating(type);
      const bool has_type = integer ? SizeOf(type) >= 4 : SizeOf(type) >= 2;
      const bool has = has_type && (op == ReduceOp::kSum || op == ReduceOp::kAvg ||
                                    (integer && (op == ReduceOp::kMin || op == ReduceOp::kMax)));
      EXPECT_EQ(reduced(type, op, true) > 0, has) << ToString(type) << " " << ToString(op);
    }
  }
}

// In registered buffers: every case, type and operator, in place and out, at sizes whose slices are no
// multiples of 4 bytes, by generated code and by the interpreter kernel.
TEST(EmittedGroups, DoSoInRegisteredBuffers) {
  const std::vector<KernelCase> cases = GroupCases();
  int32_t turn = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    Runner runner(cases[i], i, true, i % 4 == 0);
    for (DataType type : AllDataTypes()) {
      for (ReduceOp op : AllReduceOps()) {
        if (!cases[i].collective.Reduces() && op != ReduceOp::kSum) continue;
        if (++turn % 9 != 0 && !kAll) continue;
        // The switch scales after the sum, and all members by an inexact 1 ÷ n before it.
        const auto members = static_cast<uint32_t>(cases[i].collective.num_members());
        if (op == ReduceOp::kAvg && IsFloating(type) && !std::has_single_bit(members)) continue;
        HostLaunch launch{.type = type,
                          .op = op,
                          .size_bytes = (turn % 5 < 2 ? 1013 : 1024) * SizeOf(type),
                          .in_place = turn % 2 == 0,
                          .direct = turn % 5 == 0,
                          .registered = turn % 7 != 0,
                          .scattered = turn % 11 == 0,
                          .whole = true,
                          .jitter = static_cast<uint64_t>(turn % 13 == 0 ? turn : 0)};
        if (turn % 8 == 0) launch.shape = device::HostShape{4, 2};
        // Ranks that are not alike do without.
        if (turn % 16 == 8) launch.apart = 1;
        runner.Expect(launch);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// There every element passes the switch, and none a slot: a member that stores nothing gives its message
// without a copy.
TEST(EmittedGroups, DoWithoutSlotsInRegisteredBuffers) {
  const std::vector<KernelCase> cases = GroupCases();
  size_t seen = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const bool both = cases[i].name == "allreduce fused on 4";
    if (!both && cases[i].name != "reduce_scatter fused on 4" && cases[i].name != "allgather fused on 4")
      continue;
    ++seen;
    for (const bool in_place : {false, true}) {
      HostMachine machine(cases[i].program, cases[i].collective, device::kKernels[i], Protocol::kSimple,
                          kSlotBytes, 0, true);
      const HostLaunch launch{.size_bytes = 4096, .in_place = in_place, .registered = true};
      ASSERT_TRUE(machine.Run(RandomInputs(cases[i].program, cases[i].collective, launch), launch).ok());
      EXPECT_EQ(machine.SlotBytesUsed(), 0) << cases[i].name << ", in place " << in_place;
      HostLaunch other = launch;
      other.registered = false;
      ASSERT_TRUE(machine.Run(RandomInputs(cases[i].program, cases[i].collective, other), other).ok());
      EXPECT_GT(machine.SlotBytesUsed(), 0) << cases[i].name;
    }
  }
  EXPECT_EQ(seen, 3U);
}

// A root whose members never come reports which one it waits for.
TEST(EmittedGroups, GiveUpWhenNobodyComes) {
  const std::vector<KernelCase> cases = GroupCases();
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].name != "reduce fused on 3") continue;  // to rank 1
    HostMachine machine(cases[i].program, cases[i].collective, device::kKernels[i], Protocol::kSimple,
                        kSlotBytes);
    const HostLaunch launch{.size_bytes = 4000, .spin_limit_ns = 50'000'000};
    const StatusOr<Buffers> found =
        machine.RunRanks(RandomInputs(cases[i].program, cases[i].collective, launch), launch, 1, 1);
    ASSERT_FALSE(found.ok());
    // The first of two instances reports it.
    const std::string& said = found.status().message();
    EXPECT_EQ(said.rfind("rank 1: threadblock 0, instruction 0, pass ", 0), 0U) << said;
    EXPECT_TRUE(said.ends_with(": wait 2 for 0, expected 1, saw 0")) << said;
    return;
  }
  FAIL() << "the case is gone";
}

}  // namespace
}  // namespace xccl::testing
