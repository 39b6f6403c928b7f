#include "runtime/cuda/gpu.h"

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <utility>

namespace xccl::cuda {
namespace {

StatusOr<int32_t> Attribute(const Driver& driver, DeviceAttribute attribute, DeviceId device) {
  int value = 0;
  XCCL_RETURN_IF_ERROR(
      Check(driver, driver.DeviceGetAttribute(&value, attribute, device),
            fmt::format("cuDeviceGetAttribute {} of device {}", static_cast<int>(attribute), device)));
  return value;
}

StatusOr<GpuProperties> PropertiesOf(const Driver& driver, DeviceId device) {
  GpuProperties p;
  p.ordinal = device;
  std::array<char, 256> name = {};
  XCCL_RETURN_IF_ERROR(Check(driver, driver.DeviceGetName(name.data(), name.size() - 1, device),
                             fmt::format("cuDeviceGetName of device {}", device)));
  p.name = name.data();
  Uuid uuid;
  XCCL_RETURN_IF_ERROR(Check(driver, driver.DeviceGetUuid(&uuid, device),
                             fmt::format("cuDeviceGetUuid of device {}", device)));
  p.uuid.assign(reinterpret_cast<const char*>(uuid.bytes), sizeof uuid.bytes);
  XCCL_ASSIGN_OR_RETURN(const int32_t major,
                        Attribute(driver, DeviceAttribute::kComputeCapabilityMajor, device));
  XCCL_ASSIGN_OR_RETURN(const int32_t minor,
                        Attribute(driver, DeviceAttribute::kComputeCapabilityMinor, device));
  p.arch = major * 10 + minor;
  XCCL_ASSIGN_OR_RETURN(p.multiprocessors, Attribute(driver, DeviceAttribute::kMultiprocessorCount, device));
  // An older driver does not know the later attributes; the device then does not have the feature either.
  const auto value = [&](DeviceAttribute attribute) {
    const StatusOr<int32_t> known = Attribute(driver, attribute, device);
    return known.ok() ? *known : 0;
  };
  const auto has = [&](DeviceAttribute attribute) { return value(attribute) != 0; };
  p.virtual_memory = has(DeviceAttribute::kVirtualMemoryManagement);
  p.file_descriptors = has(DeviceAttribute::kPosixFileDescriptors);
  p.multicast = has(DeviceAttribute::kMulticast) && driver.MulticastCreate != nullptr;
  p.rdma = has(DeviceAttribute::kGpuDirectRdma);
  p.dma_buf = has(DeviceAttribute::kDmaBuf) && driver.MemGetHandleForAddressRange != nullptr;
  // NCCL, too, flushes before 9.0, and where counters come over C2C and messages over PCIe.
  p.rdma_ordered = p.arch >= 90 && value(DeviceAttribute::kRdmaOrdering) >= kToOwner &&
                   !has(DeviceAttribute::kHostPageTables);
  p.rdma_flush = (value(DeviceAttribute::kRdmaFlushes) & kFlushOfHost) != 0 &&
                 driver.FlushGPUDirectRDMAWrites != nullptr;
  return p;
}

}  // namespace

StatusOr<std::shared_ptr<const Gpu>> Gpu::Open(const Driver& driver, int32_t ordinal) {
  int devices = 0;
  XCCL_RETURN_IF_ERROR(cuda::Check(driver, driver.DeviceGetCount(&devices), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= devices)
    return InvalidInput(fmt::format("cuda: device {}; expected 0 to {}", ordinal, devices - 1));
  DeviceId device = 0;
  XCCL_RETURN_IF_ERROR(
      cuda::Check(driver, driver.DeviceGet(&device, ordinal), fmt::format("cuDeviceGet of {}", ordinal)));
  XCCL_ASSIGN_OR_RETURN(GpuProperties properties, PropertiesOf(driver, device));
  Context context = nullptr;
  XCCL_RETURN_IF_ERROR(cuda::Check(driver, driver.DevicePrimaryCtxRetain(&context, device),
                                   fmt::format("cuDevicePrimaryCtxRetain of device {}", device)));
  return std::shared_ptr<const Gpu>(std::make_shared<Gpu>(driver, std::move(properties), context));
}

Gpu::~Gpu() { driver_.DevicePrimaryCtxRelease(properties_.ordinal); }

Status Gpu::Check(Result result, const std::string& call) const {
  return cuda::Check(driver_, result, fmt::format("device {}: {}", properties_.ordinal, call));
}

ScopedContext::ScopedContext(const Gpu& gpu)
    : gpu_(gpu), pushed_(gpu.driver().CtxPushCurrent(gpu.context()) == Result::kSuccess) {}

ScopedContext::~ScopedContext() {
  if (pushed_) gpu_.driver().CtxPopCurrent(nullptr);
}

Status EnablePeerAccess(const Gpu& gpu, const Gpu& peer) {
  const ScopedContext context(gpu);
  const Result result = gpu.driver().CtxEnablePeerAccess(peer.context(), 0);
  if (result == Result::kPeerAccessAlreadyEnabled) return OkStatus();
  return gpu.Check(result, fmt::format("cuCtxEnablePeerAccess to device {}", peer.id()));
}

StatusOr<OwnedEvent> CreateEvent(std::shared_ptr<const Gpu> gpu, bool timed) {
  const ScopedContext context(*gpu);
  Event event = nullptr;
  XCCL_RETURN_IF_ERROR(
      gpu->Check(gpu->driver().EventCreate(&event, timed ? 0U : kEventDisableTiming), "cuEventCreate"));
  return OwnedEvent(std::move(gpu), event);
}

StatusOr<OwnedStream> CreateStream(std::shared_ptr<const Gpu> gpu) {
  const ScopedContext context(*gpu);
  Stream stream = nullptr;
  XCCL_RETURN_IF_ERROR(gpu->Check(gpu->driver().StreamCreate(&stream, kNonBlockingStream), "cuStreamCreate"));
  return OwnedStream(std::move(gpu), stream);
}

Status Synchronize(const OwnedStream& stream) {
  const Gpu& gpu = *stream.gpu();
  const ScopedContext context(gpu);
  return gpu.Check(gpu.driver().StreamSynchronize(stream.get()), "cuStreamSynchronize");
}

Status RunAlone(const std::shared_ptr<const Gpu>& gpu, const std::string& call,
                const std::function<Result(const Driver&, Stream)>& queue) {
  const CaptureRelaxed relaxed(*gpu);
  XCCL_ASSIGN_OR_RETURN(const OwnedStream stream, CreateStream(gpu));
  {
    const ScopedContext context(*gpu);
    XCCL_RETURN_IF_ERROR(gpu->Check(queue(gpu->driver(), stream.get()), call));
  }
  return Synchronize(stream);
}

StatusOr<PinnedMemory> PinnedMemory::Create(const std::shared_ptr<const Gpu>& gpu, size_t bytes) {
  const ScopedContext context(*gpu);
  const Driver& driver = gpu->driver();
  PinnedMemory memory;
  void* host = nullptr;
  XCCL_RETURN_IF_ERROR(gpu->Check(driver.MemHostAlloc(&host, bytes, kHostPortable | kHostMapped),
                                  fmt::format("cuMemHostAlloc of {} bytes", bytes)));
  memory.host_ = {gpu, host};
  XCCL_RETURN_IF_ERROR(
      gpu->Check(driver.MemHostGetDevicePointer(&memory.device_, host, 0), "cuMemHostGetDevicePointer"));
  std::memset(host, 0, bytes);
  return memory;
}

CaptureRelaxed::CaptureRelaxed(const Gpu& gpu) : gpu_(gpu) {
  gpu_.driver().ThreadExchangeStreamCaptureMode(&mode_);
}

CaptureRelaxed::~CaptureRelaxed() { gpu_.driver().ThreadExchangeStreamCaptureMode(&mode_); }

}  // namespace xccl::cuda
