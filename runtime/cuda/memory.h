// Device memory that peers can map, and the data that they need to map it. Where the device can, the driver's
// virtual memory functions make it, with a file descriptor. Otherwise cuMemAlloc makes it, with a legacy IPC
// handle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu.h"
#include "runtime/host/exchange.h"

namespace xccl::cuda {

enum class Sharing : uint8_t { kNone, kFileDescriptor, kLegacy };
std::string_view ToString(Sharing sharing);  // "file descriptors"

// The best form of sharing between processes that a device has.
Sharing BestSharing(const GpuProperties& properties);

// A range of addresses that memory of the driver's virtual memory functions is mapped at. Movable.
class MappedRange {
 public:
  // Maps all of `handle`, for the devices of `access`. `map`, `grant`: the names of the driver's calls in
  // messages.
  static StatusOr<MappedRange> Create(const std::shared_ptr<const Gpu>& gpu, MemoryHandle handle,
                                      size_t bytes, std::span<const AccessDescription> access,
                                      const std::string& map, const std::string& grant);
  DevicePointer address() const { return reserved_.get().address; }

 private:
  struct Range {
    DevicePointer address = 0;
    size_t bytes = 0;
  };
  static void Free(const Gpu& gpu, const Range& range);
  static void Unmap(const Gpu& gpu, const Range& range);
  // Given back in the reverse of this order.
  Owned<Range, &Free> reserved_;
  Owned<Range, &Unmap> mapped_;
};

using OwnedHandle = Owned<MemoryHandle, &Driver::MemRelease>;

// Owns one range of device memory, or one mapping of a peer's. Movable.
class DeviceMemory {
 public:
  // Rounded up to the granularity, zeroed, reachable from `gpu` and from `peers` of this process. Errors:
  // kInvalidInput with the bytes asked for, the bytes free, and `what` it is for.
  static StatusOr<DeviceMemory> Create(const std::shared_ptr<const Gpu>& gpu, size_t bytes, Sharing sharing,
                                       std::span<const std::shared_ptr<const Gpu>> peers,
                                       const std::string& what);
  // The allocation that holds these bytes. Its maker owns it; this object does not free it. Errors:
  // kInvalidInput where the bytes are not within one allocation.
  static StatusOr<DeviceMemory> Borrow(std::shared_ptr<const Gpu> gpu, DevicePointer address, size_t bytes);
  // The data that another process needs: it describes the range and may carry a file.
  StatusOr<Parcel> Export() const;
  // The memory of an exporter, as this process and `gpu` see it. Legacy memory of this process is used where
  // it is: it must outlive the result. Errors: kInvalidInput saying whose device cannot be reached.
  static StatusOr<DeviceMemory> Import(std::shared_ptr<const Gpu> gpu, const Parcel& parcel);

  DevicePointer address() const { return address_; }
  size_t bytes() const { return bytes_; }
  Sharing sharing() const { return sharing_; }
  MemoryHandle handle() const { return handle_.get(); }  // 0 for legacy memory

 private:
  static StatusOr<DeviceMemory> CreateVirtual(const std::shared_ptr<const Gpu>& gpu, size_t bytes,
                                              Sharing sharing,
                                              std::span<const std::shared_ptr<const Gpu>> peers);
  static StatusOr<DeviceMemory> CreateLegacy(const std::shared_ptr<const Gpu>& gpu, size_t bytes,
                                             std::span<const std::shared_ptr<const Gpu>> peers);
  Status Map(std::span<const AccessDescription> access);
  std::shared_ptr<const Gpu> gpu_;
  Sharing sharing_ = Sharing::kNone;
  DevicePointer address_ = 0;
  size_t bytes_ = 0;
  // The resources that are given back at the end. For virtual memory that is the handle, after the range that
  // it is mapped at. For legacy memory it is what was made or opened here, and nothing where this process
  // exported it to itself.
  OwnedHandle handle_;
  MappedRange range_;
  Owned<DevicePointer, &Driver::MemFree> made_;
  Owned<DevicePointer, &Driver::IpcCloseMemHandle> opened_;
};

// A range of addresses at which a switch writes, and reads and reduces, memory of all devices of a team at
// once. Each process has one object: one process creates and exports, the others import. Every process joins
// with its devices; when all have, it binds their memory and maps.
class MulticastMemory {
 public:
  // Requires: the device's properties say multicast. `sharing`: that of the memory to be bound; it and
  // `bytes` must be right for all of it. Errors: kInvalidInput for a team of fewer than two devices, for
  // bytes that are no multiple of what the driver can bind.
  static StatusOr<MulticastMemory> Create(std::shared_ptr<const Gpu> gpu, int32_t devices, size_t bytes,
                                          Sharing sharing);
  StatusOr<Parcel> Export() const;
  static StatusOr<MulticastMemory> Import(std::shared_ptr<const Gpu> gpu, const Parcel& parcel);
  Status Join(const Gpu& gpu) const;
  // Call after all have joined. bytes() of `memory` from `offset` on become this device's part; it outlives
  // this.
  Status Bind(const std::shared_ptr<const Gpu>& gpu, const DeviceMemory& memory, size_t offset);
  // Call after all have joined, for `gpus` that have.
  Status Map(std::span<const std::shared_ptr<const Gpu>> gpus);

  DevicePointer address() const { return range_.address(); }
  size_t bytes() const { return bytes_; }

 private:
  // One device's part.
  struct Part {
    MemoryHandle handle = 0;
    size_t bytes = 0;
  };
  static void Unbind(const Gpu& gpu, const Part& part);
  MulticastMemory() = default;
  std::shared_ptr<const Gpu> gpu_;
  Sharing sharing_ = Sharing::kNone;
  size_t bytes_ = 0;
  // Given back in the reverse of this order.
  OwnedHandle handle_;
  std::vector<Owned<Part, &Unbind>> bound_;
  MappedRange range_;
};

}  // namespace xccl::cuda
