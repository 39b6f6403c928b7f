// A driver for tests. Device memory is memory of this host (memfd, so that handles work between processes), a
// stream is a thread with a queue, and a kernel is a function of the test. It is stricter than the real one
// where that finds mistakes. Calls without a current context fail, and memory is inaccessible until
// MemSetAccess. Copies read their source when the stream gets there, and everything that is not given back is
// counted.
//
// Memory is of the device whose context allocated it, or that it was made for. Kernels of another device
// reach it where they would on a real one: memory of MemAlloc once CtxEnablePeerAccess was called, mappings
// as MemSetAccess says. Any other access fails the context for good, with 700, and ends its kernels. MemFree,
// ModuleLoadData and ModuleUnload wait for the kernels that run on the device, and a launch for room in the
// context's queue. Such a wait fails after a limit, with 702, and Leaks() tells of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/occupancy.h"

namespace xccl::cuda {

struct FakeOptions {
  int32_t devices = 1;
  int32_t multiprocessors = 132;
  KernelResources kernel = {.registers = 128};  // the resources that every kernel needs
  int32_t capability = 90;
  bool virtual_memory = true, file_descriptors = true, multicast = false;
  bool peers = true;       // devices reach each other
  bool nvlink = true;      // and are joined by NVLink
  int32_t most_peers = 8;  // contexts that one context can have peer access to
  bool rdma = false, dma_buf = false, rdma_ordered = true;
  size_t memory_bytes = size_t{1} << 30;
  size_t granularity = size_t{1} << 16;
  size_t most_launches = 1024;  // in a context at once
  std::chrono::milliseconds wait_limit = std::chrono::seconds(5);
};

// A process has at most one at a time, since the driver's functions carry no state.
class FakeDriver {
 public:
  struct Launch {
    const std::byte* parameter = nullptr;  // the kernel has one
    uint32_t blocks = 0, threads = 0;
    DeviceId device = 0;
  };
  // Called by a stream's thread, once a launch.
  using Kernel = std::function<void(const Launch& launch)>;

  explicit FakeDriver(const FakeOptions& options = {});
  ~FakeDriver();  // waits for the streams
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  const Driver& table() const;
  // Modules of an image have these functions; those of kAnyImage all modules whose image begins with it,
  // where they have no other of that name.
  static constexpr const char* kAnyImage = "fake";
  void AddKernel(const std::string& name, size_t parameter_bytes, Kernel kernel,
                 const std::string& image = kAnyImage);

  // They have these variables, too.
  void AddGlobal(const std::string& name, const void* data, size_t bytes);

  // Memory of a device, as of MemAlloc, zeroed. It is the driver's, and not counted as a call or in Leaks().
  template <typename T>
  std::span<T> Allocate(size_t count, DeviceId device = 0) {
    return {static_cast<T*>(AllocateBytes(count * sizeof(T), device)), count};
  }

  // Whether a kernel that runs on a device reaches all these bytes. Where it does not, the device's context
  // fails. False for every kernel of a context that has failed: it must end.
  static bool Allows(DeviceId device, const void* at, int64_t bytes);

  int64_t calls() const;
  // The call with this number (as calls() counts, from 0) fails with `error`, once. Calls that give something
  // back still do so.
  void FailCall(int64_t number, Result error);
  // From this call on, a stream whose state is queried answers this.
  void BreakStreams(Result error);
  // The objects that have not been given back, and waits that did not end: "2 handles, 1 mapping"; "" when
  // there are none.
  std::string Leaks() const;
  size_t memory_in_use() const;
  // The effect of a switch on a multicast address: the copies of that byte in the memory that the team has
  // bound, in whichever process. Empty: it is no such address.
  static std::vector<char*> CopiesAt(DevicePointer address);
  int64_t launches() const;
  // Called by FlushGPUDirectRDMAWrites.
  void OnFlush(std::function<void()> flushed);
  int64_t host_waits() const;  // StreamSynchronize

 private:
  static void* AllocateBytes(size_t bytes, DeviceId device);
};

}  // namespace xccl::cuda
