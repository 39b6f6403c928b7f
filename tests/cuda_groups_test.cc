// Runs emitted code of programs with groups through the host side of runtime/cuda, on a driver in host
// memory. A multicast address there reaches what the ranks have bound, in any process. So the test fails if
// regions or offsets are wrong, or if an object does not reach a process.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/host.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "ir/sizes.h"
#include "runtime/cuda/device_program.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/residency.h"
#include "runtime/cuda/run_program.h"
#include "runtime/cuda/test_kernel.h"
#include "runtime/host/exchange.h"
#include "runtime/run_row.h"
#include "runtime/run_table.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "tests/testing/emitted_kernels.h"
#include "tests/testing/group_cases.h"
#include "tests/testing/kernel_cases.h"

namespace xccl::testing {
namespace {

int64_t switch_accesses = 0;  // approximate, since threads race
int32_t CopiesOfFake(const char* multicast, char** copies) {
  const std::vector<char*> all = cuda::FakeDriver::CopiesAt(reinterpret_cast<cuda::DevicePointer>(multicast));
  XCCL_CHECK(all.size() >= 3);
  std::ranges::copy(all, copies);
  __atomic_fetch_add(&switch_accesses, 1, __ATOMIC_RELAXED);
  return static_cast<int32_t>(all.size());
}

struct MachineSetup {
  std::string name;
  bool one_device = false, processes = false, multicast = true, virtual_memory = true, wanted = true;
  bool registered = false;
  std::string groups;  // as reported by usage
};

// The driver of one process, with the kernel of the current case.
class Machine {
 public:
  Machine(const MachineSetup& setup, int32_t devices) {
    options_.devices = devices;
    options_.multicast = setup.multicast;
    options_.virtual_memory = setup.virtual_memory;
    device::host_switch = CopiesOfFake;
  }
  cuda::DriverSource source() {
    return [this]() -> StatusOr<const cuda::Driver*> {
      if (fake_ == nullptr) fake_ = std::make_unique<cuda::FakeDriver>(options_);
      return &fake_->table();
    };
  }
  cuda::KernelImages ImagesOf(const device::HostKernel* kernel) {
    return [this, kernel](DataType type, ReduceOp op, int32_t) -> StatusOr<std::string> {
      cuda::AddHostKernel(*fake_, kernel, type, op, Protocol::kSimple, /*check=*/{}, /*shape=*/{});
      return std::string("fake");
    };
  }
  cuda::FakeDriver& fake() { return *fake_; }

 private:
  cuda::FakeOptions options_;
  std::unique_ptr<cuda::FakeDriver> fake_;
};

StatusOr<cuda::RunReport> RunCase(Machine& machine, const MachineSetup& setup, const KernelCase& of,
                                  size_t index, int32_t turn) {
  RunOptions run;
  cuda::GpuRunOptions gpu;
  run.sizes_bytes = {52, 10012, 100012};  // messages below and above a slot
  run.iterations = 1;
  run.warmup = 1;
  gpu.ranks_per_gpu = setup.one_device ? of.program.ranks.size() : 1;
  run.processes = setup.processes;
  // Cycles through types and operators.
  run.type = AllDataTypes()[static_cast<size_t>(turn) % AllDataTypes().size()];
  run.op = AllReduceOps()[static_cast<size_t>(turn) % AllReduceOps().size()];
  gpu.program.arena.slot_bytes = 4096;
  gpu.program.multicast = setup.wanted;
  gpu.registered = setup.registered;
  return cuda::RunProgram(of.name, of.program, of.collective, machine.ImagesOf(device::kKernels[index]),
                          machine.source(), run, gpu);
}

void ExpectRight(const MachineSetup& setup, int32_t ranks, int32_t every) {
  Machine machine(setup, setup.one_device ? 1 : ranks);
  const std::vector<KernelCase> cases = GroupCases();
  ASSERT_EQ(static_cast<size_t>(device::kNumKernels), cases.size());
  int32_t turn = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const bool direct =
        cases[i].name.find(" fused ") != std::string::npos && !TraitsOf(cases[i].collective.kind()).counted;
    if (cases[i].program.ranks.size() != ranks || cases[i].program.groups.empty() ||
        (setup.registered && !direct) || ++turn % every != 0)
      continue;
    const auto report = RunCase(machine, setup, cases[i], i, turn / every);
    ASSERT_TRUE(report.ok()) << setup.name << ": " << report.status().message();
    for (const RunRow& row : report->rows)
      ASSERT_TRUE(row.wrong == 0 && row.out_of_bounds == 0)
          << setup.name << ": " << cases[i].name << " of " << row.size_bytes << " bytes: " << row.wrong
          << " wrong, " << row.out_of_bounds << " out of bounds";
    EXPECT_STREQ(report->usage.groups.data(), setup.groups.c_str()) << setup.name;
  }
  if (!setup.processes) {
    EXPECT_EQ(machine.fake().Leaks(), "") << setup.name;
  }
}

TEST(CudaGroups, ThroughTheSwitch) {
  const int64_t before = switch_accesses;
  ExpectRight({.name = "devices", .groups = "through the switch"}, 4, 1);
  EXPECT_GT(switch_accesses, before);
}
TEST(CudaGroups, ThroughTheSwitchBetweenProcesses) {
  ExpectRight({.name = "processes", .processes = true, .groups = "through the switch"}, 3, 3);
}
// The switch reaches registered buffers if its group has all ranks and all their devices can multicast.
TEST(CudaGroups, InRegisteredBuffers) {
  ExpectRight({.name = "registered",
               .processes = true,
               .registered = true,
               .groups = "through the switch, in registered buffers"},
              3, 1);
  ExpectRight({.name = "registered, no switch",
               .processes = true,
               .multicast = false,
               .registered = true,
               .groups = "member by member: the device of rank 0 cannot multicast"},
              3, 5);
}
TEST(CudaGroups, MemberByMember) {
  const int64_t before = switch_accesses;
  ExpectRight(
      {.name = "one device", .one_device = true, .groups = "member by member: ranks 0 and 1 share a device"},
      5, 3);
  ExpectRight({.name = "no switch",
               .multicast = false,
               .groups = "member by member: the device of rank 0 cannot multicast"},
              3, 2);
  ExpectRight({.name = "not wanted",
               .wanted = false,
               .groups = "member by member: the device of rank 0 cannot multicast"},
              3, 7);
  ExpectRight({.name = "legacy",
               .virtual_memory = false,
               .groups = "member by member: the device of rank 0 cannot multicast"},
              3, 5);
  EXPECT_EQ(switch_accesses, before);
}

// The result of connecting ranks 0, 1, 2 and running an allreduce. Every element of rank r's input is r + 1.
struct Connected {
  Status status;
  bool right = false;
  int64_t calls = 0;  // to the driver, until connecting ended
  std::string groups;
};
Connected ConnectAndRun(Machine& machine, const KernelCase& of, size_t index, const cuda::Driver& driver) {
  constexpr int64_t kCount = 1000;
  Connected result;
  std::vector<std::span<float>> input, output;
  std::vector<cuda::LocalRank> ranks;
  std::vector<cuda::OwnedStream> streams;
  for (int32_t r = 0; r < 3; ++r) {
    input.push_back(machine.fake().Allocate<float>(kCount, r));
    output.push_back(machine.fake().Allocate<float>(kCount, r));
    std::ranges::fill(input.back(), static_cast<float>(r + 1));
    const auto gpu = cuda::Gpu::Open(driver, r);
    auto stream = gpu.ok() ? cuda::CreateStream(*gpu) : StatusOr<cuda::OwnedStream>(gpu.status());
    result.status = stream.status();
    if (!stream.ok()) return result;
    ranks.push_back({Rank(r), *gpu});
    streams.push_back(*std::move(stream));
  }
  cuda::DeviceProgramOptions options;
  options.arena.slot_bytes = 4096;
  auto program = cuda::DeviceProgram::Connect(
      of.name, of.program, of.collective, machine.ImagesOf(device::kKernels[index]), ranks, AloneExchange(),
      {}, options, std::make_shared<cuda::CommunicatorShare>(cuda::Residency::OfProcess()));
  result.status = program.status();
  result.calls = machine.fake().calls();
  machine.fake().FailCall(-1, cuda::Result::kSuccess);
  if (!program.ok()) return result;
  result.groups = (*program)->usage().groups.data();
  const CollectiveSizes sizes(of.collective, kCount * 4, 4);
  for (size_t r = 0; r < 3 && result.status.ok(); ++r)
    result.status = (*program)->Launch(Rank(static_cast<int32_t>(r)),
                                       {reinterpret_cast<cuda::DevicePointer>(input[r].data()),
                                        reinterpret_cast<cuda::DevicePointer>(output[r].data())},
                                       sizes, {}, streams[r].get());
  if (!result.status.ok()) (*program)->Abort(result.status);
  const Status done = (*program)->Synchronize();
  if (result.status.ok()) result.status = done;
  result.right = std::ranges::all_of(output, [](std::span<const float> of_rank) {
    return std::ranges::all_of(of_rank, [](float value) { return value == 6; });
  });
  return result;
}

// If any call fails while ranks are connected, the result is an error or a communicator that does not use
// the switch. Nothing is leaked.
TEST(CudaGroups, EveryCallMayFail) {
  const std::vector<KernelCase> cases = GroupCases();
  const auto wanted = std::ranges::find(cases, "allreduce fused on 3", &KernelCase::name);
  ASSERT_TRUE(wanted != cases.end());
  const MachineSetup setup{.name = "failures", .groups = {}};
  int32_t by_hand = 0;
  bool fails = true;
  for (int64_t call = 0; fails; ++call) {
    Machine machine(setup, 3);
    const auto driver = machine.source()();
    ASSERT_TRUE(driver.ok());
    machine.fake().FailCall(call, cuda::Result::kNotSupported);
    const Connected found =
        ConnectAndRun(machine, *wanted, static_cast<size_t>(wanted - cases.begin()), **driver);
    fails = found.calls == 0 || found.calls > call;
    if (found.status.ok()) {
      EXPECT_TRUE(found.right) << "call " << call;
    }
    if (found.groups.rfind("member by member: cuda: device", 0) == 0) ++by_hand;
    EXPECT_EQ(machine.fake().Leaks(), "") << "call " << call;
  }
  // The failing calls create, join, bind and map the multicast object.
  EXPECT_GE(by_hand, 8);
}

}  // namespace
}  // namespace xccl::testing
