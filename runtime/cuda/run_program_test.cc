#include "runtime/cuda/run_program.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <new>
#include <string>

#include "runtime/cuda/test_kernel.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "runtime/testing/ring_programs.h"

namespace xccl::cuda {
namespace {

StatusOr<std::string> FakeImage(DataType, ReduceOp, int32_t) { return std::string("fake"); }

struct Allreduce {
  explicit Allreduce(int32_t ranks)
      : collective(AllMembers(CollectiveKind::kAllreduce, ranks, ranks)), program(RingAllreduce(ranks)) {}
  Collective collective;
  Program program;
};

RunOptions Options(bool processes = false) {
  RunOptions options;
  options.sizes_bytes = {0, 4, 1000, 4096};
  options.iterations = 3;
  options.warmup = 1;
  options.processes = processes;
  options.time_limit = std::chrono::seconds(20);
  return options;
}

void ExpectRight(const StatusOr<RunReport>& report, size_t rows) {
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->rows.size(), rows);
  EXPECT_TRUE(AllRight(report->rows));
  EXPECT_GT(report->usage.ctas, 0);
  EXPECT_EQ(report->usage.threads, 256);
}

TEST(CudaRun, ManyRanksOnOneGpu) {
  FakeDriver fake;
  const Allreduce a(5);
  AddTestKernel(fake, a.program, a.collective);
  const DriverSource driver = [&]() -> StatusOr<const Driver*> { return &fake.table(); };
  RunOptions options = Options();
  options.predicted_ps = [](int64_t size) { return size * 1000000; };
  const auto report =
      RunProgram("ring", a.program, a.collective, FakeImage, driver, options, {.ranks_per_gpu = 8});
  ExpectRight(report, 8);
  EXPECT_EQ(report->devices, "1 x Fake GPU 0");
  EXPECT_EQ(report->rows[4].predicted_us, 1000.0);
  ExpectRight(RunProgram("ring", a.program, a.collective, FakeImage, driver, options,
                         {.ranks_per_gpu = 8, .graph = true}),
              8);
  EXPECT_EQ(RunProgram("ring", a.program, a.collective, FakeImage, driver, Options(), {.ranks_per_gpu = 2})
                .status()
                .message(),
            "cuda: 5 ranks on 1 device, 2 on each; hint: --ranks-per-gpu 5");
  EXPECT_EQ(fake.Leaks(), "");
}

TEST(CudaRun, SeveralGpusOfOneProcess) {
  FakeOptions machine;
  machine.devices = 4;
  FakeDriver fake(machine);
  const Allreduce a(4);
  AddTestKernel(fake, a.program, a.collective);
  const DriverSource driver = [&]() -> StatusOr<const Driver*> { return &fake.table(); };
  ExpectRight(RunProgram("ring", a.program, a.collective, FakeImage, driver, Options(), {}), 8);
  const auto pairs =
      RunProgram("ring", a.program, a.collective, FakeImage, driver, Options(), {.ranks_per_gpu = 2});
  ExpectRight(pairs, 8);
  EXPECT_EQ(pairs->devices, "2 x Fake GPU 0");
  EXPECT_EQ(fake.Leaks(), "");
}

// A kernel's errors are in the table.
TEST(CudaRun, CountsWhatIsWrong) {
  FakeDriver fake;
  const Allreduce a(2);
  AddTestKernel(fake, a.program, a.collective);
  fake.AddKernel("xccl_kernel", sizeof(device::LaunchArgs), [](const FakeDriver::Launch&) {});
  const DriverSource driver = [&]() -> StatusOr<const Driver*> { return &fake.table(); };
  RunOptions options = Options();
  options.sizes_bytes = {4096};
  const auto report =
      RunProgram("ring", a.program, a.collective, FakeImage, driver, options, {.ranks_per_gpu = 2});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->rows[0].wrong, 2048);
  EXPECT_FALSE(AllRight(report->rows));
}

TEST(CudaRun, AProcessForEveryRank) {
  const Allreduce a(3);
  const DriverSource driver = [&]() -> StatusOr<const Driver*> {
    static FakeDriver* const fake = new FakeDriver;  // as long as the process
    AddTestKernel(*fake, a.program, a.collective);
    return &fake->table();
  };
  ExpectRight(
      RunProgram("ring", a.program, a.collective, FakeImage, driver, Options(true), {.ranks_per_gpu = 3}), 8);
  EXPECT_EQ(
      RunProgram("ring", a.program, a.collective, FakeImage, driver, Options(true), {}).status().message(),
      "cuda: 3 ranks on 1 device, 1 on each; hint: --ranks-per-gpu 3");
}

TEST(CudaRun, SaysWhichProcessWasEnded) {
  const Allreduce a(2);
  const DriverSource driver = []() -> StatusOr<const Driver*> {
    raise(SIGKILL);
    return InvalidInput("not reached");
  };
  EXPECT_EQ(
      RunProgram("ring", a.program, a.collective, FakeImage, driver, Options(true), {.ranks_per_gpu = 2})
          .status()
          .message(),
      "rank 0: its process was ended by signal 9 (Killed)");
}

// The others' "its process ended" is not the reason, whichever reports first and whatever the reason's own
// text says.
TEST(CudaRun, TheFailureThatEndsTheOtherProcessesIsReported) {
  const Allreduce a(3);
  void* const memory =
      mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::atomic<int>& started = *new (memory) std::atomic<int>(0);
  bool fails = false;
  const DriverSource driver = [&]() -> StatusOr<const Driver*> {
    fails = started++ == 2;
    static FakeDriver* const fake = new FakeDriver;  // as long as the process
    AddTestKernel(*fake, a.program, a.collective);
    return &fake->table();
  };
  const KernelImages images = [&](DataType, ReduceOp, int32_t) -> StatusOr<std::string> {
    if (fails) return InvalidInput("its process ended the compiler");
    return std::string("fake");
  };
  RunOptions options = Options(true);
  options.processes = true;
  EXPECT_EQ(
      RunProgram("ring", a.program, a.collective, images, driver, options, {.ranks_per_gpu = 3}).status(),
      InvalidInput("its process ended the compiler"));
  munmap(memory, sizeof(std::atomic<int>));
}

}  // namespace
}  // namespace xccl::cuda
