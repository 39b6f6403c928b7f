// What a GPU can do at best, to be put beside the tables of `xccl-synth run --backend cuda`: the copy rate
// through device memory, and an empty cooperative launch. Without a device it says so and ends with 1.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/nvrtc.h"

namespace xccl::cuda {
namespace {

constexpr char kEmpty[] = "extern \"C\" __global__ void empty() {}\n";
constexpr int kRepeats = 20;

// Seconds of one call, the least of several means.
StatusOr<double> Time(const std::shared_ptr<const Gpu>& gpu, const OwnedStream& stream,
                      const std::function<Result()>& call) {
  XCCL_ASSIGN_OR_RETURN(const OwnedEvent begin, OwnedEvent::Create(gpu));
  XCCL_ASSIGN_OR_RETURN(const OwnedEvent end, OwnedEvent::Create(gpu));
  const Driver& driver = gpu->driver();
  double least = 1e9;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const ScopedContext context(*gpu);
    XCCL_RETURN_IF_ERROR(gpu->Check(driver.EventRecord(begin.get(), stream.get()), "cuEventRecord"));
    for (int i = 0; i < kRepeats; ++i) XCCL_RETURN_IF_ERROR(gpu->Check(call(), "what is timed"));
    XCCL_RETURN_IF_ERROR(gpu->Check(driver.EventRecord(end.get(), stream.get()), "cuEventRecord"));
    XCCL_RETURN_IF_ERROR(gpu->Check(driver.StreamSynchronize(stream.get()), "cuStreamSynchronize"));
    float milliseconds = 0;
    XCCL_RETURN_IF_ERROR(
        gpu->Check(driver.EventElapsedTime(&milliseconds, begin.get(), end.get()), "cuEventElapsedTime"));
    least = std::min(least, static_cast<double>(milliseconds) / 1e3 / kRepeats);
  }
  return least;
}

Status PrintCopies(const std::shared_ptr<const Gpu>& gpu, const OwnedStream& stream) {
  for (const size_t bytes : {size_t{1} << 20, size_t{16} << 20, size_t{256} << 20, size_t{1} << 30}) {
    XCCL_ASSIGN_OR_RETURN(const DeviceMemory from,
                          DeviceMemory::Create(gpu, bytes, Sharing::kNone, {}, "source"));
    XCCL_ASSIGN_OR_RETURN(const DeviceMemory to,
                          DeviceMemory::Create(gpu, bytes, Sharing::kNone, {}, "target"));
    XCCL_ASSIGN_OR_RETURN(const double seconds, Time(gpu, stream, [&] {
                            return gpu->driver().MemcpyDtoDAsync(to.address(), from.address(), bytes,
                                                                 stream.get());
                          }));
    fmt::print("copy of {:>10} bytes: {:9.2f} us, {:7.1f} GB/s read and written\n", bytes, seconds * 1e6,
               2 * static_cast<double>(bytes) / seconds / 1e9);
  }
  return OkStatus();
}

Status PrintLaunches(const std::shared_ptr<const Gpu>& gpu, const OwnedStream& stream) {
  XCCL_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, LoadNvrtc());
  CompileRequest request;
  request.name = "empty.cu";
  request.source = kEmpty;
  request.arch = gpu->properties().arch;
  XCCL_ASSIGN_OR_RETURN(const std::string cubin, CompileToCubin(*nvrtc, request));
  const Driver& driver = gpu->driver();
  const ScopedContext context(*gpu);
  Module module = nullptr;
  Function function = nullptr;
  XCCL_RETURN_IF_ERROR(gpu->Check(driver.ModuleLoadData(&module, cubin.c_str()), "cuModuleLoadData"));
  Status status = gpu->Check(driver.ModuleGetFunction(&function, module, "empty"), "cuModuleGetFunction");
  for (const unsigned blocks : {1U, 8U, 64U, static_cast<unsigned>(gpu->properties().multiprocessors)}) {
    if (!status.ok()) break;
    const StatusOr<double> seconds = Time(gpu, stream, [&] {
      return driver.LaunchCooperativeKernel(function, blocks, 1, 1, 512, 1, 1, 0, stream.get(), nullptr);
    });
    status = seconds.status();
    if (status.ok())
      fmt::print("empty cooperative launch of {:>3} blocks: {:6.2f} us\n", blocks, *seconds * 1e6);
  }
  driver.ModuleUnload(module);
  return status;
}

Status Print() {
  XCCL_ASSIGN_OR_RETURN(const Driver* driver, LoadDriver());
  XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<const Gpu> gpu, Gpu::Open(*driver, 0));
  int version = 0;
  XCCL_RETURN_IF_ERROR(gpu->Check(driver->DriverGetVersion(&version), "cuDriverGetVersion"));
  fmt::print("{}: sm_{}, {} multiprocessors, driver for CUDA {}.{}, memory shared by {}\n",
             gpu->properties().name, gpu->properties().arch, gpu->properties().multiprocessors,
             version / 1000, version % 1000 / 10, ToString(BestSharing(gpu->properties(), false)));
  XCCL_ASSIGN_OR_RETURN(const OwnedStream stream, OwnedStream::Create(gpu));
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
