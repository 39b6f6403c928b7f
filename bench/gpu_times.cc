#include "bench/gpu_times.h"

#include <algorithm>
#include <string>

#include "runtime/cuda/memory.h"
#include "runtime/cuda/nvrtc.h"

namespace xccl::cuda {
namespace {

constexpr char kEmpty[] = "extern \"C\" __global__ void empty() {}\n";
constexpr int kRepeats = 20, kAttempts = 5;

}  // namespace

StatusOr<double> SecondsOf(const std::shared_ptr<const Gpu>& gpu, const OwnedStream& stream,
                           const std::function<Result()>& call) {
  XCCL_ASSIGN_OR_RETURN(const OwnedEvent begin, CreateEvent(gpu, /*timed=*/true));
  XCCL_ASSIGN_OR_RETURN(const OwnedEvent end, CreateEvent(gpu, /*timed=*/true));
  const Driver& driver = gpu->driver();
  double least = 1e9;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
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

StatusOr<double> CopySeconds(const std::shared_ptr<const Gpu>& gpu, const OwnedStream& stream, size_t bytes) {
  XCCL_ASSIGN_OR_RETURN(const DeviceMemory from,
                        DeviceMemory::Create(gpu, bytes, Sharing::kNone, {}, "source"));
  XCCL_ASSIGN_OR_RETURN(const DeviceMemory to,
                        DeviceMemory::Create(gpu, bytes, Sharing::kNone, {}, "target"));
  return SecondsOf(gpu, stream, [&] {
    return gpu->driver().MemcpyDtoDAsync(to.address(), from.address(), bytes, stream.get());
  });
}

StatusOr<double> EmptyLaunchSeconds(const std::shared_ptr<const Gpu>& gpu, const OwnedStream& stream,
                                    uint32_t blocks, uint32_t threads) {
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
  const Owned<Module, &Driver::ModuleUnload> loaded(gpu, module);
  XCCL_RETURN_IF_ERROR(
      gpu->Check(driver.ModuleGetFunction(&function, module, "empty"), "cuModuleGetFunction"));
  return SecondsOf(gpu, stream, [&] {
    return driver.LaunchCooperativeKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream.get(), nullptr);
  });
}

}  // namespace xccl::cuda
