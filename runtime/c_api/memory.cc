// Memory for buffers: the host's, or, in a process with ranks on GPUs, the current device's.
#include <fmt/core.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/status.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/run.h"
#include "runtime/cuda/driver.h"
#include "runtime/xccl.h"

namespace {

using xccl::OkStatus;
using xccl::Status;
using xccl::UsageError;
using xccl::c_api::Run;
using xccl::c_api::RunFor;

constexpr size_t kAlignment = 4096;  // a page

// Who gave it: a driver, or the host where it is null.
struct Given {
  std::mutex mutex;  // guards what follows
  std::map<void*, const xccl::cuda::Driver*> by;
};
Given& All() {
  static Given& given = *new Given;
  return given;
}

Status AllocateOnDevice(const xccl::cuda::Driver& driver, size_t size, void** memory) {
  xccl::cuda::DevicePointer at = 0;
  const xccl::cuda::Result result = driver.MemAlloc(&at, size);
  if (result != xccl::cuda::Result::kSuccess)
    return xccl::SystemError(fmt::format(
        "cuMemAlloc of {} bytes: CUDA error {}; expected room, and a current device as cudaSetDevice sets it",
        size, static_cast<int>(result)));
  *memory = std::bit_cast<void*>(at);
  return OkStatus();
}

}  // namespace

xcclResult_t xcclMemAlloc(void** ptr, size_t size) {
  if (ptr != nullptr) *ptr = nullptr;
  return RunFor(ptr, "ptr", [&]() -> Status {
    if (size == 0) return OkStatus();
    const xccl::cuda::Driver* driver = nullptr;
    if (xccl::c_api::AnyOnGpu()) {
      XCCL_ASSIGN_OR_RETURN(driver, xccl::c_api::TheGpus().driver());
    }
    Given& all = All();
    const std::lock_guard lock(all.mutex);
    void* made = nullptr;
    if (driver != nullptr) {
      XCCL_RETURN_IF_ERROR(AllocateOnDevice(*driver, size, &made));
    } else if (posix_memalign(&made, kAlignment, size) != 0) {
      return xccl::SystemError(fmt::format("{} bytes: out of memory", size));
    }
    all.by[made] = driver;
    *ptr = made;
    return OkStatus();
  });
}

xcclResult_t xcclMemFree(void* ptr) {
  return Run([&]() -> Status {
    if (ptr == nullptr) return OkStatus();
    Given& all = All();
    const std::lock_guard lock(all.mutex);
    const auto found = all.by.find(ptr);
    if (found == all.by.end()) return UsageError("no memory of xcclMemAlloc, or it was freed before");
    const xccl::cuda::Driver* const driver = found->second;
    all.by.erase(found);
    if (driver == nullptr) {
      std::free(ptr);
      return OkStatus();
    }
    const auto result = driver->MemFree(reinterpret_cast<uintptr_t>(ptr));
    if (result == xccl::cuda::Result::kSuccess) return OkStatus();
    return xccl::SystemError(fmt::format("cuMemFree: CUDA error {}", static_cast<int>(result)));
  });
}
