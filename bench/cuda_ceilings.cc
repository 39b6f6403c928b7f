// Measures what a GPU can do at best, for comparison with the tables of `xccl-synth run --backend cuda`: the
// copy rate through device memory, and an empty cooperative launch. Without a device it says so and ends with
// 1.
#include <fmt/core.h>

#include <cstdint>
#include <cstdio>
#include <memory>

#include "base/status.h"
#include "bench/gpu_times.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/memory.h"

namespace xccl::cuda {
namespace {

Status PrintCopies(const std::shared_ptr<const Gpu>& gpu, const OwnedStream& stream) {
  for (const size_t bytes : {size_t{1} << 20, size_t{16} << 20, size_t{256} << 20, size_t{1} << 30}) {
    XCCL_ASSIGN_OR_RETURN(const double seconds, CopySeconds(gpu, stream, bytes));
    fmt::print("copy of {:>10} bytes: {:9.2f} us, {:7.1f} GB/s read and written\n", bytes, seconds * 1e6,
               2 * static_cast<double>(bytes) / seconds / 1e9);
  }
  return OkStatus();
}

Status PrintLaunches(const std::shared_ptr<const Gpu>& gpu, const OwnedStream& stream) {
  for (const uint32_t blocks : {1U, 8U, 64U, static_cast<uint32_t>(gpu->properties().multiprocessors)}) {
    XCCL_ASSIGN_OR_RETURN(const double seconds, EmptyLaunchSeconds(gpu, stream, blocks, 512));
    fmt::print("empty cooperative launch of {:>3} blocks: {:6.2f} us\n", blocks, seconds * 1e6);
  }
  return OkStatus();
}

Status Print() {
  XCCL_ASSIGN_OR_RETURN(const Driver* driver, LoadDriver());
  XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<const Gpu> gpu, Gpu::Open(*driver, 0));
  int version = 0;
  XCCL_RETURN_IF_ERROR(gpu->Check(driver->DriverGetVersion(&version), "cuDriverGetVersion"));
  fmt::print("{}: sm_{}, {} multiprocessors, driver for CUDA {}.{}, memory shared by {}\n",
             gpu->properties().name, gpu->properties().arch, gpu->properties().multiprocessors,
             version / 1000, version % 1000 / 10, ToString(BestSharing(gpu->properties())));
  XCCL_ASSIGN_OR_RETURN(const OwnedStream stream, CreateStream(gpu));
  XCCL_RETURN_IF_ERROR(PrintCopies(gpu, stream));
  return PrintLaunches(gpu, stream);
}

}  // namespace
}  // namespace xccl::cuda

int main() {
  const xccl::Status status = xccl::cuda::Print();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}
