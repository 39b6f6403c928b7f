// A Description in the parcel's bytes describes a shared range; a file descriptor travels beside it. A
// process never imports its own export, since the driver refuses its own legacy handles: there the address is
// valid as it is. Memory of the virtual memory functions is mapped once more, for a device that its maker may
// not have known, and stays until that mapping goes.
#include "runtime/cuda/memory.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "base/random.h"

namespace xccl::cuda {
namespace {

// Travels between processes of one build.
struct Description {
  uint64_t process = 0;
  Sharing sharing = Sharing::kNone;
  DevicePointer address = 0;  // in the exporter
  uint64_t bytes = 0;
  IpcHandle legacy = {};
};
static_assert(std::is_trivially_copyable_v<Description>);

StatusOr<Description> DescriptionOf(const Parcel& parcel) {
  Description description;
  if (parcel.bytes.size() != sizeof description)
    return InvalidInput(
        fmt::format("cuda: a peer described its memory in {} bytes; expected {}: is it another version?",
                    parcel.bytes.size(), sizeof description));
  std::memcpy(&description, parcel.bytes.data(), sizeof description);
  return description;
}

HandleType HandleTypeOf(Sharing sharing) {
  return sharing == Sharing::kFileDescriptor ? HandleType::kPosixFileDescriptor : HandleType::kNone;
}

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// A handle travels as a file.
StatusOr<Parcel> Pack(const Gpu& gpu, MemoryHandle handle, Description description) {
  description.process = ProcessNumber();
  Parcel parcel{std::string(reinterpret_cast<const char*>(&description), sizeof description), {}};
  if (description.sharing == Sharing::kFileDescriptor) {
    int descriptor = -1;
    XCCL_RETURN_IF_ERROR(gpu.Check(
        gpu.driver().MemExportToShareableHandle(&descriptor, handle, HandleType::kPosixFileDescriptor, 0),
        "cuMemExportToShareableHandle to a file descriptor"));
    parcel.files.emplace_back(descriptor);
  }
  return parcel;
}

StatusOr<MemoryHandle> RetainHandle(const Gpu& gpu, DevicePointer address) {
  MemoryHandle handle = 0;
  XCCL_RETURN_IF_ERROR(gpu.Check(gpu.driver().MemRetainAllocationHandle(&handle, PointerTo<void>(address)),
                                 "cuMemRetainAllocationHandle"));
  return handle;
}

StatusOr<MemoryHandle> ImportHandle(const Gpu& gpu, const Parcel& parcel) {
  MemoryHandle handle = 0;
  if (parcel.files.size() != 1 || !parcel.files[0].open())
    return InvalidInput("cuda: a peer sent no file descriptor for its memory");
  // The driver takes the number where a pointer is declared.
  void* const descriptor = PointerTo<void>(static_cast<DevicePointer>(parcel.files[0].get()));
  XCCL_RETURN_IF_ERROR(gpu.Check(
      gpu.driver().MemImportFromShareableHandle(&handle, descriptor, HandleType::kPosixFileDescriptor),
      "cuMemImportFromShareableHandle of a file descriptor"));
  return handle;
}

}  // namespace

std::string_view ToString(Sharing sharing) {
  switch (sharing) {
    case Sharing::kNone:
      return "one process";
    case Sharing::kFileDescriptor:
      return "file descriptors";
    case Sharing::kLegacy:
      return "legacy IPC";
  }
  return "unknown";
}

Sharing BestSharing(const GpuProperties& properties) {
  if (properties.virtual_memory && properties.file_descriptors) return Sharing::kFileDescriptor;
  return Sharing::kLegacy;
}

StatusOr<MappedRange> MappedRange::Create(const std::shared_ptr<const Gpu>& gpu, MemoryHandle handle,
                                          size_t bytes, std::span<const AccessDescription> access,
                                          const std::string& map, const std::string& grant) {
  const Driver& driver = gpu->driver();
  MappedRange range;
  Range reserved{0, bytes};
  XCCL_RETURN_IF_ERROR(gpu->Check(driver.MemAddressReserve(&reserved.address, bytes, 0, 0, 0),
                                  fmt::format("cuMemAddressReserve of {} bytes", bytes)));
  range.reserved_ = {gpu, reserved};
  XCCL_RETURN_IF_ERROR(gpu->Check(driver.MemMap(reserved.address, bytes, 0, handle, 0), map));
  range.mapped_ = {gpu, reserved};
  XCCL_RETURN_IF_ERROR(
      gpu->Check(driver.MemSetAccess(reserved.address, bytes, access.data(), access.size()), grant));
  return range;
}

void MappedRange::Free(const Gpu& gpu, const Range& range) {
  gpu.driver().MemAddressFree(range.address, range.bytes);
}
void MappedRange::Unmap(const Gpu& gpu, const Range& range) {
  gpu.driver().MemUnmap(range.address, range.bytes);
}

StatusOr<DeviceMemory> DeviceMemory::CreateVirtual(const std::shared_ptr<const Gpu>& gpu, size_t bytes,
                                                   Sharing sharing,
                                                   std::span<const std::shared_ptr<const Gpu>> peers) {
  const Driver& driver = gpu->driver();
  AllocationProperties properties;
  properties.handle_types = HandleTypeOf(sharing);
  properties.location.id = gpu->id();
  size_t granularity = 0;
  XCCL_RETURN_IF_ERROR(
      gpu->Check(driver.MemGetAllocationGranularity(&granularity, &properties, kRecommendedGranularity),
                 "cuMemGetAllocationGranularity"));
  DeviceMemory memory;
  memory.gpu_ = gpu;
  memory.bytes_ = RoundUp(bytes, granularity);
  memory.sharing_ = sharing;
  MemoryHandle handle = 0;
  XCCL_RETURN_IF_ERROR(gpu->Check(driver.MemCreate(&handle, memory.bytes_, &properties, 0),
                                  fmt::format("cuMemCreate of {} bytes", memory.bytes_)));
  memory.handle_ = {gpu, handle};
  std::vector<AccessDescription> access = {{{kLocationDevice, gpu->id()}, kReadWrite}};
  for (const std::shared_ptr<const Gpu>& peer : peers)
    if (peer->id() != gpu->id()) access.push_back({{kLocationDevice, peer->id()}, kReadWrite});
  XCCL_RETURN_IF_ERROR(memory.Map(access));
  return memory;
}

Status DeviceMemory::Map(std::span<const AccessDescription> access) {
  XCCL_ASSIGN_OR_RETURN(
      range_,
      MappedRange::Create(gpu_, handle_.get(), bytes_, access, fmt::format("cuMemMap of {} bytes", bytes_),
                          fmt::format("cuMemSetAccess for {} devices", access.size())));
  address_ = range_.address();
  return OkStatus();
}

StatusOr<DeviceMemory> DeviceMemory::CreateLegacy(const std::shared_ptr<const Gpu>& gpu, size_t bytes,
                                                  std::span<const std::shared_ptr<const Gpu>> peers) {
  const Driver& driver = gpu->driver();
  DeviceMemory memory;
  memory.gpu_ = gpu;
  memory.bytes_ = bytes;
  memory.sharing_ = Sharing::kLegacy;
  XCCL_RETURN_IF_ERROR(
      gpu->Check(driver.MemAlloc(&memory.address_, bytes), fmt::format("cuMemAlloc of {} bytes", bytes)));
  memory.made_ = {gpu, memory.address_};
  // Peers of this process reach it through the context.
  for (const std::shared_ptr<const Gpu>& peer : peers)
    if (peer->id() != gpu->id()) XCCL_RETURN_IF_ERROR(EnablePeerAccess(*peer, *gpu));
  return memory;
}

StatusOr<DeviceMemory> DeviceMemory::Create(const std::shared_ptr<const Gpu>& gpu, size_t bytes,
                                            Sharing sharing,
                                            std::span<const std::shared_ptr<const Gpu>> peers,
                                            const std::string& what) {
  const ScopedContext context(*gpu);
  if (bytes == 0) bytes = 1;
  size_t free = 0, total = 0;
  XCCL_RETURN_IF_ERROR(gpu->Check(gpu->driver().MemGetInfo(&free, &total), "cuMemGetInfo"));
  if (bytes > free)
    return InvalidInput(fmt::format("cuda: device {}: {}: needs {} bytes of device memory; {} of {} are free",
                                    gpu->id(), what, bytes, free, total));
  StatusOr<DeviceMemory> memory = sharing != Sharing::kLegacy && gpu->properties().virtual_memory
                                      ? CreateVirtual(gpu, bytes, sharing, peers)
                                      : CreateLegacy(gpu, bytes, peers);
  if (!memory.ok()) return Annotate(memory.status(), what);
  XCCL_RETURN_IF_ERROR(RunAlone(gpu, "cuMemsetD8Async", [&](const Driver& driver, Stream stream) {
    return driver.MemsetD8Async(memory->address_, 0, memory->bytes_, stream);
  }));
  return memory;
}

StatusOr<DeviceMemory> DeviceMemory::Borrow(std::shared_ptr<const Gpu> gpu, DevicePointer address,
                                            size_t bytes) {
  const CaptureRelaxed relaxed(*gpu);
  const ScopedContext context(*gpu);
  const Driver& driver = gpu->driver();
  DeviceMemory memory;
  XCCL_RETURN_IF_ERROR(gpu->Check(driver.MemGetAddressRange(&memory.address_, &memory.bytes_, address),
                                  "cuMemGetAddressRange of a buffer"));
  const uint64_t at = address - memory.address_;
  if (bytes == 0 || bytes > memory.bytes_ - at)
    return InvalidInput(
        fmt::format("cuda: device {}: a buffer of {} bytes, {} behind the begin of an allocation of {}; "
                    "expected 1 byte or more, all within it",
                    gpu->id(), bytes, at, memory.bytes_));
  // Memory of cuMemAlloc has a legacy handle; what was mapped with the virtual memory functions has none.
  IpcHandle handle;
  memory.sharing_ = Sharing::kLegacy;
  if (driver.IpcGetMemHandle(&handle, memory.address_) != Result::kSuccess) {
    memory.sharing_ = Sharing::kFileDescriptor;
    XCCL_ASSIGN_OR_RETURN(const MemoryHandle retained, RetainHandle(*gpu, memory.address_));
    memory.handle_ = {gpu, retained};
  }
  memory.gpu_ = std::move(gpu);
  return memory;
}

StatusOr<Parcel> DeviceMemory::Export() const {
  const ScopedContext context(*gpu_);
  Description description{.sharing = sharing_, .address = address_, .bytes = bytes_};
  if (sharing_ == Sharing::kLegacy)
    XCCL_RETURN_IF_ERROR(
        gpu_->Check(gpu_->driver().IpcGetMemHandle(&description.legacy, address_), "cuIpcGetMemHandle"));
  return Pack(*gpu_, handle_.get(), description);
}

StatusOr<DeviceMemory> DeviceMemory::Import(std::shared_ptr<const Gpu> gpu, const Parcel& parcel) {
  const ScopedContext context(*gpu);
  XCCL_ASSIGN_OR_RETURN(const Description description, DescriptionOf(parcel));
  DeviceMemory memory;
  memory.gpu_ = std::move(gpu);
  memory.sharing_ = description.sharing;
  memory.bytes_ = description.bytes;
  const bool own = description.process == ProcessNumber();
  if (own && description.sharing == Sharing::kLegacy) {
    memory.address_ = description.address;
    return memory;
  }
  if (description.sharing == Sharing::kLegacy) {
    XCCL_RETURN_IF_ERROR(memory.gpu_->Check(
        memory.gpu_->driver().IpcOpenMemHandle(&memory.address_, description.legacy, kLazyPeerAccess),
        "cuIpcOpenMemHandle of a peer's memory"));
    memory.opened_ = {memory.gpu_, memory.address_};
    return memory;
  }
  XCCL_ASSIGN_OR_RETURN(const MemoryHandle handle, own ? RetainHandle(*memory.gpu_, description.address)
                                                       : ImportHandle(*memory.gpu_, parcel));
  memory.handle_ = {memory.gpu_, handle};
  const AccessDescription access{{kLocationDevice, memory.gpu_->id()}, kReadWrite};
  XCCL_RETURN_IF_ERROR(memory.Map({&access, 1}));
  return memory;
}

StatusOr<MulticastMemory> MulticastMemory::Create(std::shared_ptr<const Gpu> gpu, int32_t devices,
                                                  size_t bytes, Sharing sharing) {
  if (devices < 2)
    return InvalidInput(fmt::format("cuda: a multicast group of {} device; expected 2 or more", devices));
  if (sharing == Sharing::kLegacy)
    return InvalidInput(fmt::format("cuda: {} memory in a multicast group", ToString(sharing)));
  const ScopedContext context(*gpu);
  MulticastProperties properties;
  properties.devices = static_cast<uint32_t>(devices);
  properties.size = bytes;
  properties.handle_types = static_cast<uint32_t>(HandleTypeOf(sharing));
  size_t granularity = 0;
  XCCL_RETURN_IF_ERROR(
      gpu->Check(gpu->driver().MulticastGetGranularity(&granularity, &properties, kMinimumGranularity),
                 "cuMulticastGetGranularity"));
  if (granularity == 0 || bytes == 0 || bytes % granularity != 0)
    return InvalidInput(
        fmt::format("cuda: device {}: a multicast group of {} bytes; expected a multiple of {}", gpu->id(),
                    bytes, granularity));
  MulticastMemory memory;
  memory.bytes_ = bytes;
  memory.sharing_ = sharing;
  MemoryHandle handle = 0;
  XCCL_RETURN_IF_ERROR(
      gpu->Check(gpu->driver().MulticastCreate(&handle, &properties),
                 fmt::format("cuMulticastCreate of {} bytes on {} devices", memory.bytes_, devices)));
  memory.handle_ = {gpu, handle};
  memory.gpu_ = std::move(gpu);
  return memory;
}

StatusOr<Parcel> MulticastMemory::Export() const {
  const ScopedContext context(*gpu_);
  return Pack(*gpu_, handle_.get(), {.sharing = sharing_, .bytes = bytes_});
}

StatusOr<MulticastMemory> MulticastMemory::Import(std::shared_ptr<const Gpu> gpu, const Parcel& parcel) {
  const ScopedContext context(*gpu);
  XCCL_ASSIGN_OR_RETURN(const Description description, DescriptionOf(parcel));
  MulticastMemory memory;
  XCCL_ASSIGN_OR_RETURN(const MemoryHandle handle, ImportHandle(*gpu, parcel));
  memory.handle_ = {gpu, handle};
  memory.bytes_ = description.bytes;
  memory.sharing_ = description.sharing;
  memory.gpu_ = std::move(gpu);
  return memory;
}

Status MulticastMemory::Join(const Gpu& gpu) const {
  const ScopedContext context(gpu);
  return gpu.Check(gpu.driver().MulticastAddDevice(handle_.get(), gpu.id()), "cuMulticastAddDevice");
}

Status MulticastMemory::Bind(const std::shared_ptr<const Gpu>& gpu, const DeviceMemory& memory,
                             size_t offset) {
  const ScopedContext context(*gpu);
  if (memory.handle() == 0 || memory.bytes() < offset + bytes_)
    return InvalidInput(fmt::format("cuda: {} bytes of {} bound from {} on to a multicast group of {} bytes",
                                    memory.bytes(), ToString(memory.sharing()), offset, bytes_));
  XCCL_RETURN_IF_ERROR(
      gpu->Check(gpu->driver().MulticastBindMem(handle_.get(), 0, memory.handle(), offset, bytes_, 0),
                 fmt::format("cuMulticastBindMem of {} bytes", bytes_)));
  bound_.emplace_back(gpu, Part{handle_.get(), bytes_});
  return OkStatus();
}

Status MulticastMemory::Map(std::span<const std::shared_ptr<const Gpu>> gpus) {
  const ScopedContext context(*gpu_);
  std::vector<AccessDescription> access;
  for (const std::shared_ptr<const Gpu>& gpu : gpus)
    access.push_back({{kLocationDevice, gpu->id()}, kReadWrite});
  XCCL_ASSIGN_OR_RETURN(
      range_, MappedRange::Create(gpu_, handle_.get(), bytes_, access, "cuMemMap of a multicast group",
                                  "cuMemSetAccess of a multicast group"));
  return OkStatus();
}

void MulticastMemory::Unbind(const Gpu& gpu, const Part& part) {
  gpu.driver().MulticastUnbind(part.handle, gpu.id(), 0, part.bytes);
}

}  // namespace xccl::cuda
