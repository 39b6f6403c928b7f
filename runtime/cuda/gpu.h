// One device of this machine, opened: its primary context, what it can do, and the calls that every other
// file needs. Memory, streams and pinned memory are owned by small movable objects, so that nothing is left
// behind on any error path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "runtime/cuda/driver.h"

namespace xccl::cuda {

struct GpuProperties {
  int32_t ordinal = 0;
  std::string name;
  std::string uuid;  // 16 bytes: the same device in every process
  int32_t arch = 0;  // compute capability, major * 10 + minor
  int32_t multiprocessors = 0;
  bool cooperative = false;
  bool virtual_memory = false, file_descriptors = false, fabric = false, multicast = false;
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

// Makes a device's context this thread's for a scope; the one before comes back after it. Where that fails,
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

// A stream that does not wait for the default stream.
class OwnedStream {
 public:
  static StatusOr<OwnedStream> Create(std::shared_ptr<const Gpu> gpu);
  OwnedStream() = default;
  OwnedStream(OwnedStream&& other) noexcept { *this = std::move(other); }
  OwnedStream& operator=(OwnedStream&& other) noexcept;
  ~OwnedStream();

  Stream get() const { return stream_; }
  Status Synchronize() const;

 private:
  std::shared_ptr<const Gpu> gpu_;
  Stream stream_ = nullptr;
};

// Memory of the host that kernels reach at `device()`. Zeroed.
class PinnedMemory {
 public:
  static StatusOr<PinnedMemory> Create(std::shared_ptr<const Gpu> gpu, size_t bytes);
  PinnedMemory() = default;
  PinnedMemory(PinnedMemory&& other) noexcept { *this = std::move(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;
  ~PinnedMemory();

  std::byte* host() const { return host_; }
  DevicePointer device() const { return device_; }

 private:
  std::shared_ptr<const Gpu> gpu_;
  std::byte* host_ = nullptr;
  DevicePointer device_ = 0;
};

class OwnedEvent {
 public:
  static StatusOr<OwnedEvent> Create(std::shared_ptr<const Gpu> gpu);
  OwnedEvent() = default;
  OwnedEvent(OwnedEvent&& other) noexcept { *this = std::move(other); }
  OwnedEvent& operator=(OwnedEvent&& other) noexcept;
  ~OwnedEvent();
  Event get() const { return event_; }

 private:
  std::shared_ptr<const Gpu> gpu_;
  Event event_ = nullptr;
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
