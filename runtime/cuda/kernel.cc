#include "runtime/cuda/kernel.h"

#include <fmt/core.h>

#include <utility>

namespace xccl::cuda {

StatusOr<Kernel> Kernel::Load(std::shared_ptr<const Gpu> gpu, const std::string& image,
                              const std::string& name) {
  const CaptureRelaxed relaxed(*gpu);
  const ScopedContext context(*gpu);
  Kernel kernel;
  kernel.gpu_ = std::move(gpu);
  const Driver& driver = kernel.gpu_->driver();
  const auto check = [&](Result result, const std::string& call) {
    return Annotate(kernel.gpu_->Check(result, call), name);
  };
  Module module = nullptr;
  XCCL_RETURN_IF_ERROR(check(
      driver.ModuleLoadData(&module, image.c_str()),
      fmt::format("cuModuleLoadData of {} bytes for sm_{}", image.size(), kernel.gpu_->properties().arch)));
  kernel.module_ = {kernel.gpu_, module};
  XCCL_RETURN_IF_ERROR(check(driver.ModuleGetFunction(&kernel.function_, module, "xccl_kernel"),
                             "cuModuleGetFunction of xccl_kernel"));
  XCCL_RETURN_IF_ERROR(kernel.ReadInfo(name));
  int value = 0;
  XCCL_RETURN_IF_ERROR(check(driver.FuncGetAttribute(&value, FunctionAttribute::kRegisters, kernel.function_),
                             "cuFuncGetAttribute of the registers"));
  kernel.registers_ = value;
  XCCL_RETURN_IF_ERROR(check(
      driver.OccupancyMaxActiveBlocksPerMultiprocessor(&value, kernel.function_, kernel.info_.threads, 0),
      "cuOccupancyMaxActiveBlocksPerMultiprocessor"));
  if (value < 1)
    return InvalidInput(
        fmt::format("{}: a block of {} threads with {} registers each fits no multiprocessor of {}", name,
                    kernel.info_.threads, kernel.registers_, kernel.gpu_->properties().name));
  kernel.blocks_per_multiprocessor_ = value;
  return kernel;
}

Status Kernel::ReadInfo(const std::string& name) {
  const Driver& driver = gpu_->driver();
  DevicePointer address = 0;
  size_t bytes = 0;
  XCCL_RETURN_IF_ERROR(
      Annotate(gpu_->Check(driver.ModuleGetGlobal(&address, &bytes, module_.get(), "xccl_kernel_info"),
                           "cuModuleGetGlobal of xccl_kernel_info"),
               name));
  if (bytes != sizeof info_)
    return InvalidInput(fmt::format("{}: xccl_kernel_info has {} bytes; expected {}: compile it anew", name,
                                    bytes, sizeof info_));
  XCCL_ASSIGN_OR_RETURN(const OwnedStream stream, CreateStream(gpu_));
  const Status copied = gpu_->Check(driver.MemcpyDtoHAsync(&info_, address, bytes, stream.get()),
                                    "cuMemcpyDtoHAsync of xccl_kernel_info");
  XCCL_RETURN_IF_ERROR(Annotate(copied, name));
  XCCL_RETURN_IF_ERROR(Synchronize(stream));
  if (info_.abi_version != device::kAbiVersion)
    return InvalidInput(fmt::format("{}: the kernel has ABI {}; expected {}: compile it anew", name,
                                    info_.abi_version, device::kAbiVersion));
  return OkStatus();
}

Status Kernel::Launch(const device::LaunchArgs& args, int32_t blocks, bool cooperative, Stream stream) const {
  device::LaunchArgs parameter = args;
  return LaunchWith(&parameter, blocks, cooperative, stream);
}

Status Kernel::LaunchWith(void* parameter, int32_t blocks, bool cooperative, Stream stream) const {
  void* parameters[] = {parameter};
  const Driver& driver = gpu_->driver();
  const unsigned grid = static_cast<unsigned>(blocks), threads = static_cast<unsigned>(info_.threads);
  if (cooperative)
    return gpu_->Check(
        driver.LaunchCooperativeKernel(function_, grid, 1, 1, threads, 1, 1, 0, stream, parameters),
        fmt::format("cuLaunchCooperativeKernel of {} blocks of {} threads", blocks, info_.threads));
  return gpu_->Check(
      driver.LaunchKernel(function_, grid, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr),
      fmt::format("cuLaunchKernel of {} blocks of {} threads", blocks, info_.threads));
}

}  // namespace xccl::cuda
