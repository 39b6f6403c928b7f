#include "runtime/cuda/network_slots.h"

#include <algorithm>
#include <utility>

namespace xccl::cuda {
namespace {

// A dma-buf is of whole pages; the largest that Linux's machines with GPUs have.
constexpr size_t kPage = 64 << 10;

size_t RoundUp(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

OwnedFile ExportDmaBuf(const Gpu& gpu, DevicePointer address, size_t bytes) {
  if (!gpu.properties().dma_buf) return {};
  const ScopedContext context(gpu);
  int file = -1;
  if (gpu.driver().MemGetHandleForAddressRange(&file, address, bytes, kDmaBufFile, 0) != Result::kSuccess)
    return {};
  return OwnedFile(file);
}

}  // namespace

StatusOr<NetworkSlots> NetworkSlots::Create(const std::shared_ptr<const Gpu>& gpu, NetworkMemory& memory,
                                            const std::function<bool(const NetworkMemory&)>& reaches) {
  NetworkSlots slots;
  slots.gpu_ = gpu;
  const auto bytes = static_cast<size_t>(memory.layout.SlotsBytes());
  const GpuProperties& properties = gpu->properties();
  if (bytes > 0 && properties.rdma && (properties.rdma_ordered || properties.rdma_flush)) {
    // Memory of MemAlloc can always be registered, and begins anywhere.
    StatusOr<DeviceMemory> made = DeviceMemory::Create(gpu, RoundUp(bytes) + kPage, Sharing::kLegacy, {},
                                                       "slots of connections between hosts");
    if (made.ok()) {
      slots.of_gpu_ = *std::move(made);
      slots.device_ = RoundUp(slots.of_gpu_.address());
      memory.slots = PointerTo<std::byte>(slots.device_);
      slots.dmabuf_ = ExportDmaBuf(*gpu, slots.device_, RoundUp(bytes));
      memory.dmabuf = slots.dmabuf_.get();
      if (slots.dmabuf_.open() && reaches(memory)) return slots;
      slots.dmabuf_ = {};  // it keeps the memory
      memory.dmabuf = -1;
      if (reaches(memory)) return slots;
      slots.of_gpu_ = {};
    }
  }
  // At least one byte: a rank without such connections takes part in connecting.
  XCCL_ASSIGN_OR_RETURN(slots.pinned_, PinnedMemory::Create(gpu, std::max<size_t>(bytes, 1)));
  slots.device_ = slots.pinned_.device();
  memory.slots = slots.pinned_.host();
  return slots;
}

Status NetworkSlots::Flush() const {
  const ScopedContext context(*gpu_);
  return gpu_->Check(gpu_->driver().FlushGPUDirectRDMAWrites(kToCurrent, kToOwner),
                     "cuFlushGPUDirectRDMAWrites");
}

}  // namespace xccl::cuda
