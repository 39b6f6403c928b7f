// A compiled kernel on one device: its own description (device/abi.h) and how many of its blocks fit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "device/abi.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu.h"

namespace xccl::cuda {

// Movable owner of a module.
class Kernel {
 public:
  // `image`: a cubin. Errors: kInvalidInput "NAME: ..." for an image that the driver refuses, that lacks
  // xccl_kernel or xccl_kernel_info, that is of another ABI, or whose blocks do not fit the device.
  static StatusOr<Kernel> Load(std::shared_ptr<const Gpu> gpu, const std::string& image,
                               const std::string& name);
  const device::KernelInfo& info() const { return info_; }
  int32_t blocks_per_multiprocessor() const { return blocks_per_multiprocessor_; }
  int32_t registers() const { return registers_; }
  // Multiprocessors that a grid fills.
  int32_t MultiprocessorsFor(int32_t blocks) const {
    return (blocks + blocks_per_multiprocessor_ - 1) / blocks_per_multiprocessor_;
  }
  // Queues it. `cooperative`: the driver refuses a grid whose blocks do not all run at once. Requires: the
  // device's context is current.
  Status Launch(const device::LaunchArgs& args, int32_t blocks, bool cooperative, Stream stream) const;
  // Likewise, for a kernel with another parameter.
  Status LaunchWith(void* parameter, int32_t blocks, bool cooperative, Stream stream) const;

 private:
  Kernel() = default;
  Status ReadInfo(const std::string& name);
  std::shared_ptr<const Gpu> gpu_;
  Owned<Module, &Driver::ModuleUnload> module_;
  Function function_ = nullptr;
  device::KernelInfo info_;
  int32_t blocks_per_multiprocessor_ = 0, registers_ = 0;
};

}  // namespace xccl::cuda
