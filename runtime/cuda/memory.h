// Device memory that peers can map, and what they need to map it. Where the device can, it is made by the
// driver's virtual memory functions, with a file descriptor (processes of a host) or a fabric handle (hosts
// of one NVLink domain); else by cuMemAlloc with a legacy IPC handle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/exchange.h"
#include "runtime/cuda/gpu.h"

namespace xccl::cuda {

enum class Sharing : uint8_t { kNone, kFileDescriptor, kFabric, kLegacy };
std::string_view ToString(Sharing sharing);  // "file descriptors"

// The best way that a device has: fabric only where it is asked for, since it needs a running IMEX daemon.
Sharing BestSharing(const GpuProperties& properties, bool fabric);

// Owns one range of device memory, or one mapping of a peer's. Movable.
class DeviceMemory {
 public:
  // Rounded up to the granularity, zeroed, reachable from `gpu` and from `peers` of this process. Errors:
  // kInvalidInput with the bytes asked for, the bytes free, and `what` it is for.
  static StatusOr<DeviceMemory> Create(const std::shared_ptr<const Gpu>& gpu, size_t bytes, Sharing sharing,
                                       std::span<const std::shared_ptr<const Gpu>> peers,
                                       const std::string& what);
  // The allocation that holds these bytes, made by somebody else and not freed by this. Errors: kInvalidInput
  // where they are not within one allocation.
  static StatusOr<DeviceMemory> Borrow(std::shared_ptr<const Gpu> gpu, DevicePointer address, size_t bytes);
  // What another process needs: describes the range and may carry a file.
  StatusOr<Parcel> Export() const;
  // The memory of an exporter, as this process and `gpu` see it. A parcel of this process is mapped where it
  // is: it must outlive the result. Errors: kInvalidInput saying whose device cannot be reached.
  static StatusOr<DeviceMemory> Import(std::shared_ptr<const Gpu> gpu, const Parcel& parcel);

  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  DevicePointer address() const { return address_; }
  size_t bytes() const { return bytes_; }
  Sharing sharing() const { return sharing_; }
  MemoryHandle handle() const { return handle_; }  // 0 for legacy memory

 private:
  enum class Kind : uint8_t { kNothing, kOwned, kImported, kAlias, kBorrowed };
  static StatusOr<DeviceMemory> CreateVirtual(std::shared_ptr<const Gpu> gpu, size_t bytes, Sharing sharing,
                                              std::span<const std::shared_ptr<const Gpu>> peers);
  Status Map(std::span<const AccessDescription> access);
  std::shared_ptr<const Gpu> gpu_;
  Kind kind_ = Kind::kNothing;
  Sharing sharing_ = Sharing::kNone;
  DevicePointer address_ = 0;
  size_t bytes_ = 0;
  MemoryHandle handle_ = 0;
  bool reserved_ = false, mapped_ = false;
};

// A range of addresses at which a switch writes, and reads and reduces, memory of all devices of a team at
// once. One object a process: one process creates and exports, the others import. Every process joins with
// its devices; when all have, it binds their memory and maps.
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
  // After all have joined. bytes() of `memory` from `offset` on become this device's part; it outlives this.
  Status Bind(const std::shared_ptr<const Gpu>& gpu, const DeviceMemory& memory, size_t offset);
  // After all have joined. For `gpus`, which have.
  Status Map(std::span<const std::shared_ptr<const Gpu>> gpus);

  MulticastMemory(MulticastMemory&& other) noexcept { *this = std::move(other); }
  MulticastMemory& operator=(MulticastMemory&& other) noexcept;
  ~MulticastMemory();
  DevicePointer address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  MulticastMemory() = default;
  std::shared_ptr<const Gpu> gpu_;
  std::vector<std::shared_ptr<const Gpu>> bound_;
  Sharing sharing_ = Sharing::kNone;
  MemoryHandle handle_ = 0;
  DevicePointer address_ = 0;
  size_t bytes_ = 0;
  bool reserved_ = false, mapped_ = false;
};

}  // namespace xccl::cuda
