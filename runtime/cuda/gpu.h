// One device of this machine, opened: its primary context, its abilities, and the calls that every other file
// needs. Small movable objects own memory, streams and pinned memory, so nothing is left behind on any error
// path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/status.h"
#include "runtime/cuda/driver.h"

namespace xccl::cuda {

struct GpuProperties {
  int32_t ordinal = 0;
  std::string name;
  std::string uuid;  // 16 bytes: the same device in every process
  int32_t arch = 0;  // compute capability, major * 10 + minor
  int32_t multiprocessors = 0;
  bool virtual_memory = false, file_descriptors = false, multicast = false;
  bool rdma = false;     // network devices can write its memory,
  bool dma_buf = false;  // which a file can stand for;
  // kernels see the writes in order, or can be made to by Driver::FlushGPUDirectRDMAWrites.
  bool rdma_ordered = false, rdma_flush = false;
};

// Thread-safe. Outlives everything that was made on it.
class Gpu {
 public:
  // Errors: kInvalidInput "cuda: device 3: expected 0 to 1".
  static StatusOr<std::shared_ptr<const Gpu>> Open(const Driver& driver, int32_t ordinal);
  Gpu(const Driver& driver, GpuProperties properties, Context context)
      : driver_(driver), properties_(std::move(properties)), context_(context) {}
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Driver& driver() const { return driver_; }
  const GpuProperties& properties() const { return properties_; }
  Context context() const { return context_; }
  DeviceId id() const { return properties_.ordinal; }
  Status Check(Result result, const std::string& call) const;

 private:
  const Driver& driver_;
  const GpuProperties properties_;
  const Context context_;
};

// Makes a device's context this thread's for a scope; the earlier one comes back after it. Where that fails,
// the calls inside fail and say so.
class ScopedContext {
 public:
  explicit ScopedContext(const Gpu& gpu);
  ~ScopedContext();
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

 private:
  const Gpu& gpu_;
  bool pushed_;
};

// Lets kernels of a device reach what cuMemAlloc gives in the peer's context, for good; it may be so already.
Status EnablePeerAccess(const Gpu& gpu, const Gpu& peer);

// A resource of a device, owned here. It is given back through kRelease: a function of the driver, or
// void(const Gpu&, const T&). Movable.
template <typename T, auto kRelease>
class Owned {
 public:
  Owned() = default;
  Owned(std::shared_ptr<const Gpu> gpu, T object) : gpu_(std::move(gpu)), object_(object) {}
  Owned(Owned&& other) noexcept { *this = std::move(other); }
  Owned& operator=(Owned&& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() {
    if (gpu_ == nullptr) return;
    const ScopedContext context(*gpu_);
    if constexpr (std::is_member_pointer_v<decltype(kRelease)>) {
      (gpu_->driver().*kRelease)(object_);
    } else {
      kRelease(*gpu_, object_);
    }
  }
  T get() const { return object_; }
  const std::shared_ptr<const Gpu>& gpu() const { return gpu_; }

 private:
  std::shared_ptr<const Gpu> gpu_;
  T object_ = {};
};

using OwnedEvent = Owned<Event, &Driver::EventDestroy>;
// `timed`: the time between two of them can be asked for, which makes recording slower.
StatusOr<OwnedEvent> CreateEvent(std::shared_ptr<const Gpu> gpu, bool timed = false);

using OwnedStream = Owned<Stream, &Driver::StreamDestroy>;
// A stream that does not wait for the default stream.
StatusOr<OwnedStream> CreateStream(std::shared_ptr<const Gpu> gpu);
Status Synchronize(const OwnedStream& stream);
// Lets `queue` put work on a stream of its own and waits for it, even while another stream is captured.
// `call`: the name of that work in messages.
Status RunAlone(const std::shared_ptr<const Gpu>& gpu, const std::string& call,
                const std::function<Result(const Driver&, Stream)>& queue);

// Memory of the host that kernels reach at `device()`. Zeroed.
class PinnedMemory {
 public:
  static StatusOr<PinnedMemory> Create(const std::shared_ptr<const Gpu>& gpu, size_t bytes);
  std::byte* host() const { return static_cast<std::byte*>(host_.get()); }
  DevicePointer device() const { return device_; }

 private:
  Owned<void*, &Driver::MemFreeHost> host_;
  DevicePointer device_ = 0;
};

// Lets this thread set things up (allocate, copy on a stream of its own, wait for it) while another of the
// process's streams is being captured into a graph.
class CaptureRelaxed {
 public:
  explicit CaptureRelaxed(const Gpu& gpu);
  ~CaptureRelaxed();
  CaptureRelaxed(const CaptureRelaxed&) = delete;
  CaptureRelaxed& operator=(const CaptureRelaxed&) = delete;

 private:
  const Gpu& gpu_;
  CaptureMode mode_ = CaptureMode::kRelaxed;
};

}  // namespace xccl::cuda
