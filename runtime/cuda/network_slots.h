// The slots of a rank's connections with ranks of other hosts: what its kernels and its network device both
// read and write.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/memory.h"
#include "runtime/host/owned_file.h"
#include "runtime/transport/network.h"

namespace xccl::cuda {

class NetworkSlots {
 public:
  // Memory of the GPU where the network's device can be given it, as a dma-buf or through the kernel module
  // nvidia_peermem; `reaches` tries. Otherwise pinned memory of the host, which kernels reach over PCIe. Sets
  // memory.slots and memory.dmabuf.
  static StatusOr<NetworkSlots> Create(const std::shared_ptr<const Gpu>& gpu, NetworkMemory& memory,
                                       const std::function<bool(const NetworkMemory&)>& reaches);
  DevicePointer device() const { return device_; }
  bool of_gpu() const { return of_gpu_.address() != 0; }
  // True: a kernel that sees a message's counter may not see its bytes, unless Flush was called between.
  bool needs_flush() const { return of_gpu() && !gpu_->properties().rdma_ordered; }
  Status Flush() const;

 private:
  std::shared_ptr<const Gpu> gpu_;
  DevicePointer device_ = 0;
  PinnedMemory pinned_;
  DeviceMemory of_gpu_;
  OwnedFile dmabuf_;
};

}  // namespace xccl::cuda
