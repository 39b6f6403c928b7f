// Runs emitted code through the host side of runtime/cuda: the driver is in host memory and its kernel is
// what codegen emitted for the host. Covers every collective and protocol, with ranks in one launch, on
// several devices and in several processes.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "runtime/cuda/run_program.h"
#include "runtime/cuda/test_kernel.h"
#include "runtime/run_row.h"
#include "runtime/run_table.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "tests/testing/emitted_kernels.h"
#include "tests/testing/kernel_cases.h"

namespace xccl::testing {
namespace {

constexpr int32_t kRanks = 3;

// The driver of one process, with the kernel of the current case.
class Machine {
 public:
  explicit Machine(const cuda::FakeOptions& options, bool registered = false)
      : options_(options), registered_(registered) {}

  cuda::DriverSource source() {
    return [this]() -> StatusOr<const cuda::Driver*> {
      if (fake_ == nullptr) fake_ = std::make_unique<cuda::FakeDriver>(options_);
      return &fake_->table();
    };
  }
  // Modules that stand in for compiled code of this kernel; null: the interpreter kernel.
  cuda::KernelImages ImagesOf(const device::HostKernel* kernel, Protocol protocol) {
    return [this, kernel, protocol](DataType type, ReduceOp op, int32_t) -> StatusOr<std::string> {
      std::function<void(const device::LaunchArgs&)> check;
      if (registered_ && kernel != nullptr)
        check = [kernel](const device::LaunchArgs& args) { CheckRegistered(*kernel, args); };
      cuda::AddHostKernel(*fake_, kernel, type, op, protocol, check, /*shape=*/{});
      return std::string("fake");
    };
  }
  std::string Leaks() const { return fake_ == nullptr ? "" : fake_->Leaks(); }

 private:
  // Peers have mapped this rank's buffers, possibly at the same address.
  static void CheckRegistered(const device::HostKernel& kernel, const device::LaunchArgs& args) {
    XCCL_CHECK(args.direct == kernel.info.direct && args.own.input_window == 1 &&
               args.own.output_window == 1);
    XCCL_CHECK(args.ranks[0].connections[0].window_delta[1] != device::kUnmapped);
  }

  const cuda::FakeOptions options_;
  const bool registered_;
  std::unique_ptr<cuda::FakeDriver> fake_;
};

struct MachineSetup {
  std::string name;
  int32_t devices = 1, ranks_per_gpu = kRanks;
  bool processes = false, staged = false, legacy = false, registered = false;
  enum class Kernel : uint8_t { kOwn, kNone, kBroken } kernel = Kernel::kOwn;
  uint64_t jitter = 0, first_message = 0;
};

// Made only once, since that takes longer than a run.
const std::vector<KernelCase>& Cases() {
  static const std::vector<KernelCase> cases = KernelCases(kRanks);
  return cases;
}

void ExpectRight(const MachineSetup& setup, const std::vector<int64_t>& sizes, int32_t every) {
  cuda::FakeOptions options;
  options.devices = setup.devices;
  options.virtual_memory = !setup.legacy;
  Machine machine(options, setup.registered);
  const std::vector<KernelCase>& cases = Cases();
  ASSERT_EQ(static_cast<size_t>(device::kNumKernels), cases.size());
  int32_t turn = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    for (const Protocol protocol : {Protocol::kSimple, Protocol::kLl, Protocol::kLl128}) {
      if (++turn % every != 0) continue;
      Program program = cases[i].program;
      program.protocol = protocol;
      RunOptions run;
      cuda::GpuRunOptions gpu;
      run.sizes_bytes = sizes;
      run.iterations = 2;
      run.warmup = 1;
      gpu.ranks_per_gpu = setup.ranks_per_gpu;
      run.processes = setup.processes;
      // Cycles through types and operators; user-defined collectives have no avg.
      run.type = AllDataTypes()[static_cast<size_t>(turn / every) % AllDataTypes().size()];
      run.op = AllReduceOps()[static_cast<size_t>(turn / every) % (AllReduceOps().size() - 1)];
      gpu.program.arena.slot_bytes = 4096;
      gpu.program.direct = !setup.staged;
      gpu.registered = setup.registered;
      gpu.program.jitter = setup.jitter;
      gpu.program.first_message = setup.first_message;
      gpu.program.interpreter = machine.ImagesOf(nullptr, protocol);
      cuda::KernelImages images = machine.ImagesOf(device::kKernels[i], protocol);
      std::string notice;
      if (setup.kernel == MachineSetup::Kernel::kNone) {
        images = nullptr;
        notice = cases[i].name + ": runs on the interpreter kernel: it has no kernel of its own";
      } else if (setup.kernel == MachineSetup::Kernel::kBroken) {
        images = [](DataType, ReduceOp, int32_t) { return InvalidInput("x.cu: nvrtc for sm_90: bad\nlog"); };
        notice = cases[i].name + ": runs on the interpreter kernel: x.cu: nvrtc for sm_90: bad";
      }
      const auto report =
          cuda::RunProgram(cases[i].name, program, cases[i].collective, images, machine.source(), run, gpu);
      ASSERT_TRUE(report.ok()) << setup.name << ": " << report.status().message();
      EXPECT_EQ(report->notice, notice);
      EXPECT_EQ(report->usage.table_bytes > 0, setup.kernel != MachineSetup::Kernel::kOwn);
      EXPECT_STREQ(report->usage.groups.data(), "");  // some have fan-ins, none a switch
      for (const RunRow& row : report->rows)
        ASSERT_TRUE(row.wrong == 0 && row.out_of_bounds == 0)
            << setup.name << ": " << cases[i].name << " " << ToString(protocol) << " " << ToString(run.type)
            << " " << ToString(run.op) << " of " << row.size_bytes << " bytes, in place " << row.in_place
            << ": " << row.wrong << " wrong, " << row.out_of_bounds << " out of bounds";
    }
  }
  EXPECT_EQ(machine.Leaks(), "") << setup.name;
}

// Lines of LL128 may be torn over PCIe.
TEST(CudaRun, Ll128NeedsNvlinkBetweenDevices) {
  for (const bool processes : {false, true}) {
    cuda::FakeOptions options;
    options.devices = kRanks;
    options.nvlink = false;
    Machine machine(options);
    const KernelCase& ring = Cases()[0];
    Program program = ring.program;
    program.protocol = Protocol::kLl128;
    RunOptions run;
    run.sizes_bytes = {52};
    run.processes = processes;
    cuda::GpuRunOptions gpu;
    gpu.program.interpreter = machine.ImagesOf(nullptr, Protocol::kLl128);
    gpu.ranks_per_gpu = 1;
    EXPECT_EQ(
        cuda::RunProgram("ring", program, ring.collective, nullptr, machine.source(), run, gpu).status(),
        InvalidInput("ring: protocol ll128 between ranks 0 and 1: devices 0 and 1 are not joined by "
                     "NVLink; expected NVLink or one device; hint: protocol simple"));
    gpu.ranks_per_gpu = kRanks;
    const auto one_device =
        cuda::RunProgram("ring", program, ring.collective, nullptr, machine.source(), run, gpu);
    EXPECT_TRUE(one_device.ok()) << one_device.status().message();
  }
}

TEST(CudaRun, AllRanksInOneLaunch) { ExpectRight({.name = "one launch"}, {0, 52, 10012}, 1); }
TEST(CudaRun, AllRanksInOneLaunchThroughSlots) {
  ExpectRight({.name = "staged", .staged = true, .jitter = 7}, {10012}, 2);
}
TEST(CudaRun, CountersAndFlagsThatWrap) {
  ExpectRight({.name = "flags of LL", .first_message = (uint64_t{1} << 32) - 3}, {10012}, 4);
  ExpectRight({.name = "a lap", .processes = true, .first_message = (uint64_t{1} << 31) - 3}, {10012}, 8);
}
TEST(CudaRun, ALaunchForEveryDevice) {
  ExpectRight({.name = "devices", .devices = 3, .ranks_per_gpu = 1}, {52, 10012}, 4);  // all protocols
}
TEST(CudaRun, TheInterpreterKernelWhereThereIsNoOther) {
  ExpectRight({.name = "no kernel", .kernel = MachineSetup::Kernel::kNone}, {10012}, 4);
}
TEST(CudaRun, TheInterpreterKernelWhereTheOtherDoesNotCompile) {
  ExpectRight({.name = "broken", .processes = true, .kernel = MachineSetup::Kernel::kBroken}, {10012}, 17);
}
TEST(CudaRun, AProcessForEveryRank) { ExpectRight({.name = "processes", .processes = true}, {10012}, 5); }
TEST(CudaRun, ProcessesThatReachEachOthersBuffers) {
  ExpectRight({.name = "registered", .processes = true, .registered = true}, {0, 10012}, 5);
}
TEST(CudaRun, ProcessesWithoutVirtualMemory) {
  ExpectRight({.name = "legacy IPC", .processes = true, .legacy = true}, {10012}, 11);
}

}  // namespace
}  // namespace xccl::testing
