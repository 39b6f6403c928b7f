// Constant tables in device memory: part tables, lists of buffers. Each content is uploaded once and stays,
// so a captured launch finds it again; equal contents share one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/memory.h"

namespace xccl::cuda {

// Used by one thread at a time.
class ConstantTables {
 public:
  explicit ConstantTables(std::shared_ptr<const Gpu> gpu) : gpu_(std::move(gpu)) {}

  // The address of these bytes on the device, aligned to 128. New bytes are copied, and the call waits for
  // that; known ones are looked up. Errors: those of the driver; kLimit above 64 MiB in all.
  StatusOr<DevicePointer> Put(const std::string& bytes);
  // Copies to memory that nothing uses yet; waits for it.
  static Status Write(const std::shared_ptr<const Gpu>& gpu, DevicePointer to, const void* from,
                      size_t bytes);

 private:
  std::shared_ptr<const Gpu> gpu_;
  std::map<std::string, DevicePointer> known_;
  std::vector<DeviceMemory> chunks_;
  size_t used_ = 0;  // bytes used in the last chunk
  size_t all_ = 0;
};

}  // namespace xccl::cuda
