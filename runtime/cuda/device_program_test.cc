#include "runtime/cuda/device_program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "runtime/cuda/test_kernel.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "runtime/testing/namespaces.h"
#include "runtime/testing/ring_programs.h"

namespace xccl::cuda {
namespace {

StatusOr<std::string> FakeImage(DataType, ReduceOp, int32_t) { return std::string("fake"); }

// A ring allreduce on the fake driver.
struct Ring {
  // devices: one for all ranks, or one a rank.
  explicit Ring(FakeDriver& fake, int32_t n, int64_t c = 1000, const std::vector<int32_t>& devices = {0})
      : ranks(n),
        count(c),
        collective(AllMembers(CollectiveKind::kAllreduce, n, n)),
        program(RingAllreduce(n)),
        sizes(CollectiveSizes::OfParts(collective, {c}, sizeof(float))) {
    for (int32_t r = 0; r < n; ++r) {
      const int32_t device = devices[static_cast<size_t>(r) % devices.size()];
      input.push_back(fake.Allocate<float>(static_cast<size_t>(c), device));
      output.push_back(fake.Allocate<float>(static_cast<size_t>(c), device));
      std::iota(input[r].begin(), input[r].end(), static_cast<float>(r * 1000));
    }
  }
  DeviceBuffers Buffers(int32_t r) {
    return {reinterpret_cast<DevicePointer>(input[r].data()),
            reinterpret_cast<DevicePointer>(output[r].data())};
  }
  std::vector<DeviceBuffers> AllBuffers() {
    std::vector<DeviceBuffers> all;
    for (int32_t r = 0; r < ranks; ++r) all.push_back(Buffers(r));
    return all;
  }
  int64_t Wrong(int32_t r) const {
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i)
      wrong += output[r][i] != static_cast<float>(ranks * (ranks - 1) / 2 * 1000 + ranks * i) ? 1 : 0;
    return wrong;
  }
  int64_t Wrong() const {
    int64_t wrong = 0;
    for (int32_t r = 0; r < ranks; ++r) wrong += Wrong(r);
    return wrong;
  }
  const int32_t ranks;
  const int64_t count;
  const Collective collective;
  Program program;
  const CollectiveSizes sizes;
  std::vector<std::span<float>> input, output;
};

StatusOr<std::unique_ptr<DeviceProgram>> Connect(
    const FakeDriver& fake, const Ring& ring, const DeviceProgramOptions& options,
    std::shared_ptr<Residency> residency = std::make_shared<Residency>()) {
  XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<const Gpu> gpu, Gpu::Open(fake.table(), 0));
  std::vector<LocalRank> ranks;
  for (int32_t r = 0; r < ring.ranks; ++r) ranks.push_back({Rank(r), gpu});
  return DeviceProgram::Connect("ring", ring.program, ring.collective, FakeImage, ranks, AloneExchange(), {},
                                options, std::make_shared<CommunicatorShare>(std::move(residency)));
}

DeviceProgramOptions OneLaunch() {
  DeviceProgramOptions options;
  options.one_launch = true;
  options.time_limit = std::chrono::seconds(20);
  return options;
}

TEST(DeviceProgram, AllRanksOfADeviceInOneLaunch) {
  FakeDriver fake;
  for (int32_t n : {1, 2, 3, 5, 8}) {
    for (int64_t count : {0, 1, 7, 1000}) {
      Ring ring(fake, n, count);
      AddTestKernel(fake, ring.program, ring.collective);
      auto program = Connect(fake, ring, OneLaunch());
      ASSERT_TRUE(program.ok()) << program.status().message();
      for (int repeat = 0; repeat < 3; ++repeat)
        ASSERT_EQ((*program)->LaunchAll(ring.AllBuffers(), ring.sizes, {}, std::vector<Stream>{nullptr}),
                  OkStatus());
      EXPECT_EQ((*program)->Synchronize(), OkStatus());
      EXPECT_EQ(ring.Wrong(), 0) << n << " ranks, " << count << " elements";
    }
  }
  EXPECT_EQ(fake.Leaks(), "");
}

TEST(DeviceProgram, OneLaunchARankOnStreamsOfTheCaller) {
  FakeDriver fake;
  Ring ring(fake, 3, 5000);
  ring.program.segment_bytes = 1024;
  ring.program.instances = 2;
  AddTestKernel(fake, ring.program, ring.collective);
  {
    auto program = Connect(fake, ring, {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    std::vector<OwnedStream> streams;
    for (int32_t r = 0; r < 3; ++r) streams.push_back(*CreateStream((*program)->ranks()[0].gpu));
    const int64_t waits = fake.host_waits();
    for (int repeat = 0; repeat < 4; ++repeat)
      for (int32_t r = 0; r < 3; ++r)
        ASSERT_EQ(
            (*program)->Launch(Rank(r), ring.Buffers(r), ring.sizes, {}, streams[(r + repeat) % 3].get()),
            OkStatus());
    EXPECT_EQ(fake.host_waits(), waits) << "launching waited for the device";
    EXPECT_EQ((*program)->Synchronize(), OkStatus());
    EXPECT_EQ(ring.Wrong(), 0);
    EXPECT_EQ((*program)->usage().instances, 2);
  }
  EXPECT_EQ(fake.Leaks(), "");
}

TEST(DeviceProgram, ACapturedLaunchMayBeReplayed) {
  FakeDriver fake;
  const Driver& driver = fake.table();
  Ring ring(fake, 4);
  AddTestKernel(fake, ring.program, ring.collective);
  {
    auto program = Connect(fake, ring, OneLaunch());
    ASSERT_TRUE(program.ok()) << program.status().message();
    const std::shared_ptr<const Gpu> gpu = (*program)->ranks()[0].gpu;
    const OwnedStream stream = *CreateStream(gpu);
    const ScopedContext context(*gpu);
    ASSERT_EQ(driver.StreamBeginCapture(stream.get(), CaptureMode::kGlobal), Result::kSuccess);
    ASSERT_EQ((*program)->LaunchAll(ring.AllBuffers(), ring.sizes, {}, std::vector<Stream>{stream.get()}),
              OkStatus());
    Graph graph = nullptr;
    ASSERT_EQ(driver.StreamEndCapture(stream.get(), &graph), Result::kSuccess);
    EXPECT_EQ(fake.launches(), 0);
    GraphExec exec = nullptr;
    ASSERT_EQ(driver.GraphInstantiate(&exec, graph, 0), Result::kSuccess);
    for (int replay = 0; replay < 5; ++replay) {
      for (const std::span<float> out : ring.output) std::ranges::fill(out, -1.0f);
      ASSERT_EQ(driver.GraphLaunch(exec, stream.get()), Result::kSuccess);
      EXPECT_EQ(Synchronize(stream), OkStatus());
      EXPECT_EQ(ring.Wrong(), 0) << "replay " << replay;
    }
    EXPECT_EQ(fake.launches(), 5);
    driver.GraphExecDestroy(exec);
    driver.GraphDestroy(graph);
  }
  EXPECT_EQ(fake.Leaks(), "");
}

// The fake driver refuses what a real one does while a stream is captured.
TEST(DeviceProgram, TheFirstCallOfASizeAndTypeMayBeCaptured) {
  for (const CaptureMode mode : {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    FakeDriver fake;
    const Driver& driver = fake.table();
    Ring ring(fake, 4);
    AddTestKernel(fake, ring.program, ring.collective);
    {
      auto program = Connect(fake, ring, OneLaunch());
      ASSERT_TRUE(program.ok()) << program.status().message();
      const std::shared_ptr<const Gpu> gpu = (*program)->ranks()[0].gpu;
      const OwnedStream stream = *CreateStream(gpu);
      ASSERT_EQ((*program)->LaunchAll(ring.AllBuffers(), ring.sizes, {}, std::vector<Stream>{stream.get()}),
                OkStatus());
      const ScopedContext context(*gpu);
      ASSERT_EQ(driver.StreamBeginCapture(stream.get(), mode), Result::kSuccess);
      DevicePointer memory = 0;
      EXPECT_EQ(driver.MemAlloc(&memory, 8) == Result::kSuccess, mode == CaptureMode::kRelaxed);
      if (mode == CaptureMode::kRelaxed) driver.MemFree(memory);
      // Buffers of the first size serve a smaller one.
      const CollectiveSizes smaller(ring.collective, ring.sizes.size_bytes() / 2);
      ASSERT_EQ((*program)->LaunchAll(ring.AllBuffers(), smaller, {}, std::vector<Stream>{stream.get()}),
                OkStatus());
      EXPECT_EQ((*program)->Error(), OkStatus());
      Graph graph = nullptr;
      ASSERT_EQ(driver.StreamEndCapture(stream.get(), &graph), Result::kSuccess);
      EXPECT_EQ((*program)->Synchronize(), OkStatus());
      EXPECT_EQ(fake.launches(), 1);
      driver.GraphDestroy(graph);
    }
    EXPECT_EQ(fake.Leaks(), "");
  }
}

TEST(DeviceProgram, ARankThatStaysAwayIsReported) {
  FakeDriver fake;
  Ring ring(fake, 2);
  AddTestKernel(fake, ring.program, ring.collective);
  DeviceProgramOptions options;
  options.time_limit = std::chrono::milliseconds(100);
  auto program = Connect(fake, ring, options);
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_EQ((*program)->Launch(Rank(0), ring.Buffers(0), ring.sizes, {}, nullptr), OkStatus());
  const Status expected = LimitReached(
      "ring: rank 0: threadblock 0, instruction 1 (recv_reduce_copy_send), pass 1: expected message 1 of "
      "rank 1 on "
      "channel 0, saw 0; nothing moved for 100 ms");
  EXPECT_EQ((*program)->Synchronize().message(), expected.message());
  EXPECT_EQ((*program)->Error(), expected);
  EXPECT_EQ((*program)->Launch(Rank(0), ring.Buffers(0), ring.sizes, {}, nullptr), (*program)->Error());
}

TEST(DeviceProgram, AbortMakesKernelsLeave) {
  FakeDriver fake;
  Ring ring(fake, 2);
  AddTestKernel(fake, ring.program, ring.collective);
  auto program = Connect(fake, ring, {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_EQ((*program)->Launch(Rank(0), ring.Buffers(0), ring.sizes, {}, nullptr), OkStatus());
  EXPECT_EQ((*program)->Error(), OkStatus());
  (*program)->Abort(LimitReached("rank 1: aborted"));
  EXPECT_EQ((*program)->Synchronize(), LimitReached("rank 1: aborted"));
  EXPECT_EQ((*program)->Launch(Rank(1), ring.Buffers(1), ring.sizes, {}, nullptr),
            LimitReached("rank 1: aborted"));
}

TEST(DeviceProgram, AnErrorOfTheDriverIsReported) {
  FakeDriver fake;
  Ring ring(fake, 1);
  AddTestKernel(fake, ring.program, ring.collective);
  auto program = Connect(fake, ring, OneLaunch());
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_EQ((*program)->LaunchAll(ring.AllBuffers(), ring.sizes, {}, std::vector<Stream>{nullptr}),
            OkStatus());
  EXPECT_EQ((*program)->Synchronize(), OkStatus());
  fake.BreakStreams(Result::kIllegalAddress);
  EXPECT_EQ((*program)->Synchronize(),
            InvalidInput("cuda: device 0: ring: a kernel failed: fake error (700, FAKE_ERROR)"));
}

// As a driver would, the one in host memory goes by registers, threads and shared memory.
TEST(DeviceProgram, RefusesAKernelThatFitsNoMultiprocessor) {
  FakeOptions machine;
  machine.kernel = {.registers = 255, .shared_bytes = 50000};
  FakeDriver fake(machine);
  Ring ring(fake, 2);
  AddTestKernel(fake, ring.program, ring.collective);
  EXPECT_EQ(Connect(fake, ring, OneLaunch()).status().message(),
            "ring: a block of 256 threads with 255 registers each fits no multiprocessor of Fake GPU 0");
}

TEST(DeviceProgram, RefusesWhatDoesNotFit) {
  FakeOptions machine;
  machine.multiprocessors = 4;
  machine.kernel.registers = 168;  // one block of 256 threads
  FakeDriver fake(machine);
  Ring ring(fake, 3);
  AddTestKernel(fake, ring.program, ring.collective);
  const auto residency = std::make_shared<Residency>();
  auto first = Connect(fake, ring, OneLaunch(), residency);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(residency->held(0), 3);
  EXPECT_EQ(Connect(fake, ring, OneLaunch(), residency).status().message(),

            "ring: 3 blocks need 3 multiprocessors at once; device 0 has 4, and other communicators of "
            "this process hold 3; hint: --max-ctas");
  first = InvalidInput("gone");
  EXPECT_EQ(residency->held(0), 0);
  Ring large(fake, 5);
  AddTestKernel(fake, large.program, large.collective);
  EXPECT_EQ(Connect(fake, large, OneLaunch(), residency).status().message(),

            "ring: 5 blocks need 5 multiprocessors at once; device 0 has 4, and other communicators of "
            "this process hold 0; hint: --max-ctas");
  EXPECT_EQ(residency->held(0), 0);
}

TEST(DeviceProgram, InstancesFollowTheBudget) {
  FakeDriver fake;
  Ring ring(fake, 2);
  ring.program.instances = 8;
  ring.program.segment_bytes = 64;
  AddTestKernel(fake, ring.program, ring.collective);
  DeviceProgramOptions options = OneLaunch();
  options.max_ctas = 3;
  auto program = Connect(fake, ring, options);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ((*program)->usage().instances, 3);
  EXPECT_EQ((*program)->usage().ctas, 3);
  ASSERT_EQ((*program)->LaunchAll(ring.AllBuffers(), ring.sizes, {}, std::vector<Stream>{nullptr}),
            OkStatus());
  EXPECT_EQ((*program)->Synchronize(), OkStatus());
  EXPECT_EQ(ring.Wrong(), 0);
  options.max_ctas = 0;
  EXPECT_EQ(Connect(fake, ring, options).status().message(), "ring: 1 CTAs on a rank; --max-ctas allows 0");
}

TEST(DeviceProgram, MemoryIsBounded) {
  FakeDriver fake;
  Ring ring(fake, 2, 100000);
  AddTestKernel(fake, ring.program, ring.collective);
  DeviceProgramOptions options = OneLaunch();
  options.arena.memory_limit = 64 << 10;
  auto program = Connect(fake, ring, options);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_LE((*program)->usage().arena_bytes, 64 << 10);
  ASSERT_EQ((*program)->LaunchAll(ring.AllBuffers(), ring.sizes, {}, std::vector<Stream>{nullptr}),
            OkStatus());
  EXPECT_EQ((*program)->Synchronize(), OkStatus());
  EXPECT_EQ(ring.Wrong(), 0);
  options.arena.memory_limit = 4 << 10;
  EXPECT_EQ(Connect(fake, ring, options).status().message(),
            "ring: rank 0: 2 slots of 4096 bytes and 1664 bytes of tables need 9856 bytes of device "
            "memory; the limit is 4096 bytes; hint: --slot-memory");
}

TEST(DeviceProgram, SlotsAreAsLargeAsTheLargestCallsMessages) {
  FakeDriver fake;
  Ring ring(fake, 2, 100'000);  // messages of 200,000 bytes
  AddTestKernel(fake, ring.program, ring.collective);
  struct Case {
    std::optional<int64_t> most_bytes;
    int64_t slot_bytes;
  };
  const Case cases[] = {{{}, 1 << 20}, {400'000, 200'064}, {1024, 4096}, {64 << 20, 1 << 20}};
  for (const Case& one : cases) {
    DeviceProgramOptions options = OneLaunch();
    options.most_bytes = one.most_bytes;
    auto program = Connect(fake, ring, options);
    ASSERT_TRUE(program.ok()) << program.status().message();
    EXPECT_EQ((*program)->usage().slot_bytes, one.slot_bytes);
    // Larger calls than that are right, too.
    ASSERT_EQ((*program)->LaunchAll(ring.AllBuffers(), ring.sizes, {}, std::vector<Stream>{nullptr}),
              OkStatus());
    EXPECT_EQ((*program)->Synchronize(), OkStatus());
    EXPECT_EQ(ring.Wrong(), 0);
  }
}

// Every call to the driver fails once; whatever happens, nothing is left and nothing hangs.
TEST(DeviceProgram, NothingLeaksWhateverFails) {
  const auto scenario = [](FakeDriver& fake) -> Status {
    Ring ring(fake, 2, 64);
    AddTestKernel(fake, ring.program, ring.collective, /*shape=*/{});
    DeviceProgramOptions options;
    options.time_limit = std::chrono::milliseconds(200);
    XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceProgram> program, Connect(fake, ring, options));
    XCCL_ASSIGN_OR_RETURN(const OwnedStream first, CreateStream(program->ranks()[0].gpu));
    XCCL_ASSIGN_OR_RETURN(const OwnedStream other, CreateStream(program->ranks()[0].gpu));
    XCCL_RETURN_IF_ERROR(program->Launch(Rank(0), ring.Buffers(0), ring.sizes, {}, first.get()));
    const Status second = program->Launch(Rank(1), ring.Buffers(1), ring.sizes, {}, other.get());
    if (!second.ok()) program->Abort(second);
    const Status done = program->Synchronize();
    return second.ok() ? done : second;
  };
  int64_t calls = 0;
  {
    FakeDriver fake;
    ASSERT_EQ(scenario(fake), OkStatus());
    calls = fake.calls();
  }
  int64_t failed = 0;
  for (int64_t at = 0; at < calls; ++at) {
    FakeDriver fake;
    fake.FailCall(at, Result::kOutOfMemory);
    failed += scenario(fake).ok() ? 0 : 1;
    ASSERT_EQ(fake.Leaks(), "") << "after call " << at << " failed";
  }
  EXPECT_GT(failed, calls / 3);
}

// One process a rank, on one device.
int RunProcess(const std::string& name, int32_t rank, const FakeOptions& machine) {
  FakeDriver fake(machine);
  Ring ring(fake, 3, 3000);
  AddTestKernel(fake, ring.program, ring.collective);
  {
    const auto gpu = Gpu::Open(fake.table(), 0);
    const auto exchange = SocketExchange(name, rank, 3, std::chrono::seconds(20));
    if (!gpu.ok() || !exchange.ok()) return 1;
    auto program = DeviceProgram::Connect("ring", ring.program, ring.collective, FakeImage,
                                          {{Rank(rank), *gpu}}, *exchange, {}, {},
                                          std::make_shared<CommunicatorShare>(std::make_shared<Residency>()));
    if (!program.ok()) {
      std::fprintf(stderr, "%s\n", program.status().message().c_str());
      return 2;
    }
    for (int repeat = 0; repeat < 3; ++repeat)
      if (!(*program)->Launch(Rank(rank), ring.Buffers(rank), ring.sizes, {}, nullptr).ok()) return 3;
    if (const Status status = (*program)->Synchronize(); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.message().c_str());
      return 4;
    }
    if (ring.Wrong(rank) != 0) return 5;
    // Where handles name the process, a process's memory does not outlive it for long.
    if (!exchange->all({}).ok()) return 6;
  }
  return fake.Leaks().empty() ? 0 : 7;
}

using Fork = std::function<pid_t(const std::function<int()>& child)>;

void ExpectProcessesAreRight(const FakeOptions& machine, const Fork& fork_into) {
  const std::string name = "xccl-device-program-" + std::to_string(getpid());
  std::vector<pid_t> children;
  for (int32_t rank = 0; rank < 3; ++rank)
    children.push_back(fork_into([&] { return RunProcess(name, rank, machine); }));
  for (const pid_t child : children) {
    int ending = 0;
    waitpid(child, &ending, 0);
    EXPECT_TRUE(WIFEXITED(ending));
    EXPECT_EQ(WEXITSTATUS(ending), 0);
  }
}

TEST(DeviceProgram, ProcessesOfAHostMapEachOthersArenas) {
  FakeOptions file, legacy;
  legacy.virtual_memory = false;
  for (const FakeOptions& machine : {file, legacy})
    ExpectProcessesAreRight(machine, [](const std::function<int()>& child) {
      const pid_t process = fork();
      if (process == 0) _exit(child());
      return process;
    });
}

// Each has the number 1.
TEST(DeviceProgram, ProcessesOfSeveralContainersMapEachOthersArenas) {
  if (!testing::CanMakeNamespaces()) GTEST_SKIP() << "this user may not make name spaces";
  ExpectProcessesAreRight({}, testing::ForkIntoNamespace);
}

// The other party agrees to everything short, and describes its arena by these bytes.
Status ConnectTo(const FakeDriver& fake, const Ring& ring, const std::string& description) {
  XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<const Gpu> gpu, Gpu::Open(fake.table(), 0));
  Exchange exchange = AloneExchange();
  exchange.parties = 2;
  exchange.all = [&description](Parcel mine) -> StatusOr<std::vector<Parcel>> {
    const std::string theirs = mine.bytes.size() <= 16 ? mine.bytes : description;
    std::vector<Parcel> all(2);
    all[0] = std::move(mine);
    all[1].bytes = theirs;
    return all;
  };
  return DeviceProgram::Connect("ring", ring.program, ring.collective, FakeImage, {{Rank(0), gpu}}, exchange,
                                {}, {}, std::make_shared<CommunicatorShare>(std::make_shared<Residency>()))
      .status();
}

TEST(DeviceProgram, APeersLengthThatItsDescriptionDoesNotHaveIsRefusedAndNotRead) {
  FakeDriver fake;
  const Ring ring(fake, 2);
  AddTestKernel(fake, ring.program, ring.collective);
  for (const uint64_t length : {uint64_t{5}, uint64_t{1} << 62, UINT64_MAX}) {
    const uint64_t head[2] = {1, length};
    const std::string bytes = std::string(reinterpret_cast<const char*>(head), sizeof head) + "four";
    EXPECT_EQ(ConnectTo(fake, ring, bytes).message(), "ring: a process sent a broken description") << length;
  }
  EXPECT_EQ(ConnectTo(fake, ring, "short").message(), "ring: a process sent a broken description");
}

}  // namespace
}  // namespace xccl::cuda
