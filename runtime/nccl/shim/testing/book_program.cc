// A job for the shell: two ranks sum 256 numbers by NCCL's allreduce, on a stub of NCCL and a driver in host
// memory, with the shim as the environment (XCCL_BOOK) tells it. Prints how many numbers are wrong and how
// many calls NCCL has served.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/c_api/handles.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/test_kernel.h"
#include "runtime/nccl/shim/shim.h"
#include "runtime/nccl/shim/testing/stub_nccl.h"
#include "runtime/testing/cuda/fake_driver.h"

namespace xccl::nccl_shim {
namespace {

constexpr int kRanks = 2, kInt32 = 2;
constexpr size_t kCount = 256;

// Kernels are compiled for the host: those of a book's files are for a GPU.
void UseFakes(cuda::FakeDriver& fake) {
  c_api::TheGpus().driver = [&fake]() -> StatusOr<const cuda::Driver*> { return &fake.table(); };
  c_api::TheGpus().adapt = [&fake](cuda::BackendOptions& backend) {
    backend.images = [](const std::string&, const ServedPlan&) -> StatusOr<cuda::KernelImages> {
      return cuda::KernelImages();
    };
    backend.interpreter = [&fake](const Program& program) -> cuda::KernelImages {
      return
          [&fake, protocol = program.protocol](DataType type, ReduceOp op, int32_t) -> StatusOr<std::string> {
            cuda::AddHostKernel(fake, nullptr, type, op, protocol);
            return std::string("fake");
          };
    };
  };
  SetStubDriver(&fake.table());
  SetNccl(StubNccl());
}

// The number of wrong sums on one rank; all of them after an error.
size_t RunRank(cuda::FakeDriver& fake, int rank, NcclComm comm) {
  const auto gpu = *cuda::Gpu::Open(fake.table(), rank);
  const cuda::OwnedStream stream = *cuda::CreateStream(gpu);
  const std::span<int32_t> data = fake.Allocate<int32_t>(kCount, rank);
  for (size_t i = 0; i < kCount; ++i) data[i] = static_cast<int32_t>(i) + rank;
  const NcclCall call = {
      CollectiveKind::kAllreduce, data.data(), data.data(), kCount, kInt32, 0, 0, stream.get()};
  size_t wrong = kCount;
  if (RunCollective(call, comm) == kSuccess && cuda::Synchronize(stream).ok()) {
    wrong = 0;
    for (size_t i = 0; i < kCount; ++i) wrong += data[i] != 2 * static_cast<int32_t>(i) + 1 ? 1 : 0;
  }
  DestroyComm(comm);
  return wrong;
}

int Main() {
  cuda::FakeDriver fake(cuda::FakeOptions{.devices = kRanks});
  UseFakes(fake);
  const std::vector<NcclComm> comms = MakeStubComms({0, 1});
  TakeStubCalls();
  std::atomic<size_t> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < kRanks; ++r)
      threads.emplace_back([&, r] { wrong += RunRank(fake, r, comms[static_cast<size_t>(r)]); });
  }
  std::printf("%zu wrong, %d calls served by NCCL\n", wrong.load(), TakeStubCalls()["AllReduce"]);
  c_api::TheGpus() = c_api::Gpus();
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace xccl::nccl_shim

int main() { return xccl::nccl_shim::Main(); }
