// Compares emitted code, run on the host, with the interpreter bit by bit, on numbers whose sums depend on
// their order.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "ir/interpret/interpret.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "tests/testing/emitted_kernels.h"
#include "tests/testing/host_machine.h"
#include "tests/testing/kernel_cases.h"

namespace xccl::testing {
namespace {

constexpr int64_t kSlotBytes = 4096;

// One case with one protocol, on a machine that many launches share.
class Runner {
 public:
  Runner(const KernelCase& of, size_t index, Protocol protocol, bool interpreter = false,
         uint64_t first_step = 0)
      : case_(of),
        protocol_(protocol),
        machine_(of.program, of.collective, interpreter ? nullptr : device::kKernels[index], protocol,
                 kSlotBytes, first_step) {}

  void Expect(const HostLaunch& launch) {
    if (launch.in_place && !case_.program.in_place) return;
    if (launch.op == ReduceOp::kAvg && case_.collective.kind() == CollectiveKind::kCustom) return;
    const Buffers inputs = RandomInputs(case_.program, case_.collective, launch);
    const StatusOr<Buffers> expected = Interpret(
        case_.program, case_.collective, inputs,
        {.type = launch.type, .op = launch.op, .size_bytes = launch.size_bytes, .in_place = launch.in_place});
    ASSERT_TRUE(expected.ok()) << case_.name << ": " << expected.status().message();
    const StatusOr<Buffers> found = machine_.Run(inputs, launch);
    const std::string what =
        case_.name + " " + std::string(ToString(protocol_)) + " " + std::string(ToString(launch.type)) + " " +
        std::string(ToString(launch.op)) + " of " + std::to_string(launch.size_bytes) + " bytes, in place " +
        std::to_string(launch.in_place) + ", direct " + std::to_string(launch.direct) + ", scattered " +
        std::to_string(launch.scattered) + ", threads " + std::to_string(launch.shape.threads);
    ASSERT_TRUE(found.ok()) << what << ": " << found.status().message();
    for (size_t r = 0; r < found->size(); ++r)
      ASSERT_TRUE((*found)[r] == (*expected)[r]) << what << ", rank " << r;
  }

 private:
  const KernelCase& case_;
  const Protocol protocol_;
  HostMachine machine_;
};

// On few ranks, or on request, every combination is run; else each case with one of the protocols.
const bool kAll = XCCL_RANKS <= 3 || std::getenv("XCCL_LONG") != nullptr;

std::span<const Protocol> ProtocolsOf(size_t index) {
  static constexpr Protocol kProtocols[] = {Protocol::kSimple, Protocol::kLl, Protocol::kLl128};
  return kAll ? std::span(kProtocols) : std::span(kProtocols).subspan(index % std::size(kProtocols), 1);
}

// All sizes, both placements and direct access, for one type.
TEST(Emitted, DoesWhatTheInterpreterDoes) {
  const std::vector<KernelCase> cases = KernelCases(XCCL_RANKS);
  ASSERT_EQ(static_cast<size_t>(device::kNumKernels), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    for (Protocol protocol : ProtocolsOf(i)) {
      Runner runner(cases[i], i, protocol);
      for (int64_t size : {0, 52, 10012}) {
        for (bool in_place : {false, true}) {
          for (bool scattered : {false, true}) {
            if (!kAll && scattered != ((static_cast<size_t>(size) + i) % 2 == 0)) continue;
            HostLaunch launch{.size_bytes = size, .in_place = in_place, .scattered = scattered};
            runner.Expect(launch);
            launch.direct = true;
            if (protocol == Protocol::kSimple) runner.Expect(launch);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

// A message that is direct out of place only goes through its slot where the rank whose buffer it is runs in
// place, whatever the other end does.
TEST(Emitted, DoesSoWhereOnlySomeRanksAreInPlace) {
  const std::vector<KernelCase> cases = KernelCases(XCCL_RANKS);
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!cases[i].program.in_place) continue;
    Runner runner(cases[i], i, Protocol::kSimple);
    for (uint64_t apart = 1; apart < (uint64_t{1} << XCCL_RANKS) - 1; apart += kAll ? 1 : 17) {
      for (uint64_t jitter : {0, 1, 2}) {
        runner.Expect(
            {.size_bytes = 10012, .in_place = true, .apart = apart, .direct = true, .jitter = jitter});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Emitted, DoesSoForEveryTypeAndOperator) {
  const std::vector<KernelCase> cases = KernelCases(XCCL_RANKS);
  for (size_t i = 0; i < cases.size(); ++i) {
    for (Protocol protocol : ProtocolsOf(i)) {
      Runner runner(cases[i], i, protocol);
      int32_t turn = 0;
      for (DataType type : AllDataTypes()) {
        for (ReduceOp op : AllReduceOps()) {
          if (!cases[i].collective.Reduces() && op != ReduceOp::kSum) continue;
          ++turn;
          if (!kAll && turn % 3 != static_cast<int32_t>(i / 3 % 3)) continue;
          runner.Expect({.type = type,
                         .op = op,
                         .size_bytes = 1013 * SizeOf(type),
                         .in_place = turn % 3 == 0,
                         .direct = turn % 2 == 0,
                         .scattered = turn % 5 == 0});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Flags of LL wrap after 2^32 messages; a slot is refreshed every 2^31.
TEST(Emitted, DoesSoWhereFlagsWrap) {
  const std::vector<KernelCase> cases = KernelCases(XCCL_RANKS);
  for (size_t i = 0; i < cases.size(); i += kAll ? 1 : 2) {
    for (Protocol protocol : ProtocolsOf(i)) {
      for (uint64_t first : {(uint64_t{1} << 31) - 3, (uint64_t{1} << 32) - 3}) {
        Runner runner(cases[i], i, protocol, false, first);
        for (int64_t size : {2000, 300, 2000, 300}) runner.Expect({.size_bytes = size});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(InterpreterKernel, DoesWhatTheInterpreterDoes) {
  const std::vector<KernelCase> cases = KernelCases(XCCL_RANKS);
  for (size_t i = 0; i < cases.size(); ++i) {
    for (Protocol protocol : ProtocolsOf(i)) {
      Runner runner(cases[i], i, protocol, true);
      for (int64_t size : {0, 52, 10012}) {
        for (bool in_place : {false, true}) {
          runner.Expect(
              {.size_bytes = size, .in_place = in_place, .direct = (static_cast<size_t>(size) + i) % 3 != 0});
          if (HasFatalFailure()) return;
        }
      }
      runner.Expect({.type = DataType::kHalf, .op = ReduceOp::kAvg, .size_bytes = 2222, .direct = true});
      runner.Expect({.type = DataType::kInt8, .op = ReduceOp::kAvg, .size_bytes = 1111, .direct = true});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Emitted, DoesSoWithRandomDelays) {
  const std::vector<KernelCase> cases = KernelCases(XCCL_RANKS);
  for (size_t i = 0; i < cases.size(); ++i) {
    for (Protocol protocol : ProtocolsOf(i)) {
      Runner runner(cases[i], i, protocol);
      for (uint64_t jitter : {1, 2})
        runner.Expect({.size_bytes = 3000, .direct = jitter == 1, .jitter = jitter});
      if (HasFatalFailure()) return;
    }
  }
}

// Blocks of several threads, as on a GPU: two warps that hold a line of LL128 each, one warp that holds two,
// and threads with a line each.
TEST(Emitted, DoesSoWithSeveralThreadsPerBlock) {
  const std::vector<KernelCase> cases = KernelCases(XCCL_RANKS);
  constexpr device::HostShape kShapes[] = {{8, 4}, {16, 16}, {3, 1}};
  size_t turn = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    for (Protocol protocol : ProtocolsOf(i)) {
      Runner runner(cases[i], i, protocol), interpreted(cases[i], i, protocol, true);
      for (int64_t size : {52, 10012}) {
        const device::HostShape shape = kShapes[++turn % 3 == 0 ? 2 : turn % 7 == 0 ? 1 : 0];
        HostLaunch launch{.size_bytes = size, .direct = turn % 2 == 0, .scattered = turn % 5 == 0};
        launch.jitter = turn % 4 == 0 ? turn : 0;
        launch.shape = shape;
        (turn % 6 == 0 ? interpreted : runner).Expect(launch);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// A rank whose peers never come gives up and reports where. Other ranks can start again elsewhere.
TEST(Emitted, GivesUpWhenNobodyComes) {
  if (XCCL_RANKS == 1) GTEST_SKIP() << "one rank waits for nobody";
  const std::vector<KernelCase> cases = KernelCases(XCCL_RANKS);
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].name.rfind("allreduce ring", 0) != 0) continue;
    for (Protocol protocol : ProtocolsOf(i)) {
      HostMachine machine(cases[i].program, cases[i].collective, device::kKernels[i], protocol, kSlotBytes);
      HostLaunch launch{.size_bytes = 4000, .spin_limit_ns = 50'000'000};
      if (i % 2 == 0) launch.shape = {8, 4};
      const StatusOr<Buffers> found =
          machine.RunRanks(RandomInputs(cases[i].program, cases[i].collective, launch), launch, 0, 1);
      ASSERT_FALSE(found.ok());
      EXPECT_EQ(found.status().message().rfind("rank 0: threadblock ", 0), 0u) << found.status().message();
      EXPECT_NE(found.status().message().find("wait 2 for "), std::string::npos) << found.status().message();
    }
  }
}

}  // namespace
}  // namespace xccl::testing
