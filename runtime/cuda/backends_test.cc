#include "runtime/cuda/backends.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/test_kernel.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "runtime/testing/ring_programs.h"

namespace xccl {
namespace {

std::vector<ServedPlan> Rings(int32_t ranks) {
  PlanBookEntry allreduce;
  allreduce.file = "allreduce";
  allreduce.ranks = ranks;
  return {{allreduce, AllMembers(CollectiveKind::kAllreduce, ranks, ranks), RingAllreduce(ranks)}};
}

cuda::BackendOptions TestOptions() {
  cuda::BackendOptions options;
  options.images = [](const std::string&, const ServedPlan&) -> StatusOr<cuda::KernelImages> {
    return cuda::KernelImages([](DataType, ReduceOp, int32_t) { return StatusOr<std::string>("fake"); });
  };
  options.residency = std::make_shared<cuda::Residency>();
  return options;
}

Call Allreduce(std::span<const float> in, std::span<float> out, cuda::Stream stream) {
  Call call;
  call.send = reinterpret_cast<const std::byte*>(in.data());
  call.receive = reinterpret_cast<std::byte*>(out.data());
  call.count = static_cast<int64_t>(in.size());
  call.stream = stream;
  return call;
}

using Communicators = std::vector<std::unique_ptr<Communicator>>;
Communicators OfThreads(const cuda::FakeDriver& fake, const std::vector<int32_t>& devices) {
  auto backends = cuda::ThreadBackends(fake.table(), devices, TestOptions());
  EXPECT_TRUE(backends.ok()) << backends.status().message();
  Communicators all;
  const int32_t ranks = static_cast<int32_t>(devices.size());
  for (int32_t r = 0; r < ranks; ++r) {
    all.push_back(std::make_unique<Communicator>(
        Rank(r), ranks, std::move((*backends)[static_cast<size_t>(r)]), CommunicatorOptions()));
    EXPECT_EQ(all.back()->LoadPlans("rings", Rings(ranks)), OkStatus());
  }
  return all;
}

TEST(CudaBackends, OneThreadDrivesSeveralRanksOnSeveralDevices) {
  cuda::FakeOptions options;
  options.devices = 2;
  cuda::FakeDriver fake(options);
  cuda::AddTestKernel(fake, Rings(3)[0].program, Rings(3)[0].collective);
  {
    const Communicators all = OfThreads(fake, {0, 1, 1});
    std::vector<std::span<float>> in, out;
    std::vector<cuda::OwnedStream> streams;
    for (int32_t r = 0; r < 3; ++r) {
      in.push_back(fake.Allocate<float>(777, r == 0 ? 0 : 1));
      out.push_back(fake.Allocate<float>(777, r == 0 ? 0 : 1));
      std::iota(in[r].begin(), in[r].end(), static_cast<float>(r * 10000));
      streams.push_back(*cuda::CreateStream(*cuda::Gpu::Open(fake.table(), r == 0 ? 0 : 1)));
    }
    for (int32_t repeat = 0; repeat < 2; ++repeat)
      for (int32_t r = 0; r < 3; ++r)
        EXPECT_EQ(all[r]->Enqueue(Allreduce(in[r], out[r], streams[r].get())), OkStatus());
    for (int32_t r = 0; r < 3; ++r) {
      EXPECT_EQ(all[r]->Synchronize(), OkStatus());
      for (size_t i = 0; i < out[r].size(); ++i) ASSERT_EQ(out[r][i], 3 * (10000 + static_cast<float>(i)));
    }
  }
  EXPECT_EQ(fake.Leaks(), "");
}

// The plans of a communicator run one after another, so it holds what the largest needs, not their sum.
TEST(CudaBackends, PlansOfACommunicatorShareItsMultiprocessors) {
  cuda::FakeOptions machine;
  machine.multiprocessors = 4;
  machine.kernel.registers = 168;  // one block of 256 threads
  cuda::FakeDriver fake(machine);
  std::vector<ServedPlan> plans = Rings(3);
  cuda::AddTestKernel(fake, plans[0].program, plans[0].collective);
  for (const char* file : {"second", "third"}) {
    plans.push_back(plans[0]);
    plans.back().entry.file = file;
  }
  cuda::BackendOptions options = TestOptions();
  auto first = cuda::ThreadBackends(fake.table(), {0, 0, 0}, options);
  auto second = cuda::ThreadBackends(fake.table(), {0, 0, 0}, options);
  ASSERT_TRUE(first.ok() && second.ok());
  {
    Communicator large(Rank(0), 3, std::move((*first)[0]), {});
    Communicator other(Rank(0), 3, std::move((*second)[0]), {});
    EXPECT_EQ(large.LoadPlans("book", plans), OkStatus());
    EXPECT_EQ(options.residency->held(0), 3);
    EXPECT_EQ(
        other.LoadPlans("book", plans),
        InvalidInput("book/allreduce: 3 blocks need 3 multiprocessors at once; device 0 has 4, and other "
                     "communicators of this process hold 3; hint: --max-ctas"));
  }
}

TEST(CudaBackends, AbortEndsTheOthers) {
  cuda::FakeDriver fake;
  cuda::AddTestKernel(fake, Rings(2)[0].program, Rings(2)[0].collective);
  const Communicators all = OfThreads(fake, {0, 0});
  const std::span<float> in = fake.Allocate<float>(100), out = fake.Allocate<float>(100);
  EXPECT_EQ(all[0]->Enqueue(Allreduce(in, out, nullptr)), OkStatus());
  EXPECT_EQ(all[0]->AsyncError(), OkStatus());
  all[1]->Abort();
  EXPECT_EQ(all[0]->Synchronize(), LimitReached("rank 1: aborted"));
  EXPECT_EQ(all[0]->AsyncError(), LimitReached("rank 1: aborted"));
  EXPECT_EQ(all[0]->Enqueue(Allreduce(in, out, nullptr)), LimitReached("rank 1: aborted"));
}

TEST(CudaBackends, ABookWithoutKernelsSaysWhatMakesThemWhereThereIsNoInterpreter) {
  cuda::FakeDriver fake;
  cuda::BackendOptions options = TestOptions();
  options.images = cuda::ImagesOfBook(std::make_shared<cuda::KernelCache>(""));
  auto backends = cuda::ThreadBackends(fake.table(), {0}, options);
  ASSERT_TRUE(backends.ok());
  Communicator communicator(Rank(0), 1, std::move((*backends)[0]), {});
  EXPECT_EQ(communicator.LoadPlans("book", Rings(1)),
            InvalidInput(
                "book/allreduce: the plan book has no kernel for it; hint: xccl-synth emit BOOK --to cuda"));
  EXPECT_EQ(cuda::ThreadBackends(fake.table(), {0, 1}, options).status(),
            InvalidInput("cuda: device 1; expected 0 to 0"));
}

// Calls between registering and deregistering, and after it, on memory that can be registered.
int RunRegistered(const cuda::FakeDriver& fake, Communicator& communicator, int32_t rank) {
  std::vector<float> in(5000, static_cast<float>(rank + 1));
  if (communicator.Register(reinterpret_cast<const std::byte*>(in.data()), 20000).ok()) return 10;
  const auto memory = cuda::DeviceMemory::Create(*cuda::Gpu::Open(fake.table(), 0), 40000,
                                                 cuda::Sharing::kLegacy, {}, "test");
  auto* const buffer = cuda::PointerTo<float>(memory->address());
  std::ranges::copy(in, buffer);
  const Call call = Allreduce({buffer, 5000}, {buffer + 5000, 5000}, nullptr);
  const StatusOr<int32_t> handle = communicator.Register(call.send, 40000);
  if (!handle.ok() || *handle != 1) return 11;
  for (const bool registered : {true, false}) {
    std::fill_n(buffer + 5000, 5000, -1.0f);
    if (!communicator.Enqueue(call).ok() || !communicator.Synchronize().ok()) return 12;
    if (std::count(buffer + 5000, buffer + 10000, 3.0f) != 5000) return 13;
    if (registered && communicator.Deregister(*handle) != OkStatus()) return 14;
  }
  return communicator.Deregister(*handle) == InvalidInput("deregister: no buffer is registered as 1") ? 0
                                                                                                      : 15;
}

// One process of a group: 0 when all was as it should be.
int RunProcess(const std::string& name, int32_t rank, bool dies) {
  cuda::FakeDriver fake;
  cuda::AddTestKernel(fake, Rings(2)[0].program, Rings(2)[0].collective);
  auto backend =
      cuda::ProcessBackend(fake.table(), name, Rank(rank), 2, 0, std::chrono::seconds(20), TestOptions());
  if (!backend.ok()) return 1;
  Communicator communicator(Rank(rank), 2, *std::move(backend), {});
  if (!communicator.LoadPlans("rings", Rings(2)).ok()) return 2;
  const std::span<float> in = fake.Allocate<float>(5000), out = fake.Allocate<float>(5000);
  std::ranges::fill(in, static_cast<float>(rank + 1));
  if (dies && rank == 1) _exit(9);
  if (!communicator.Enqueue(Allreduce(in, out, nullptr)).ok()) return 3;
  const Status status = communicator.Synchronize();
  if (dies) return status == PeerEnded(name + ": party 1: its process ended") ? 0 : 4;
  if (!status.ok() || std::ranges::count(out, 3.0f) != 5000) return 5;
  return RunRegistered(fake, communicator, rank);
}

TEST(CudaBackends, ProcessesMeetUnderAName) {
  for (bool dies : {false, true}) {
    const std::string name = "xccl-cuda-test-" + std::to_string(getpid()) + (dies ? "-dies" : "");
    std::vector<pid_t> children;
    for (int32_t rank : {0, 1}) {
      const pid_t child = fork();
      if (child == 0) _exit(RunProcess(name, rank, dies));
      children.push_back(child);
    }
    for (int32_t rank : {0, 1}) {
      int ending = 0;
      waitpid(children[static_cast<size_t>(rank)], &ending, 0);
      EXPECT_TRUE(WIFEXITED(ending));
      EXPECT_EQ(WEXITSTATUS(ending), dies && rank == 1 ? 9 : 0) << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace xccl
