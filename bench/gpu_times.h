// Measures what a GPU can do at best: the rate of copies through its memory, and a cooperative launch that
// does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu.h"

namespace xccl::cuda {

// Seconds of one call, the least of several means. `call` queues work on the stream.
StatusOr<double> SecondsOf(const std::shared_ptr<const Gpu>& gpu, const OwnedStream& stream,
                           const std::function<Result()>& call);
// Time of a copy from device memory to device memory; it reads and writes `bytes` each.
StatusOr<double> CopySeconds(const std::shared_ptr<const Gpu>& gpu, const OwnedStream& stream, size_t bytes);
// Time of an empty cooperative launch. Compiles a kernel with NVRTC.
StatusOr<double> EmptyLaunchSeconds(const std::shared_ptr<const Gpu>& gpu, const OwnedStream& stream,
                                    uint32_t blocks, uint32_t threads);

}  // namespace xccl::cuda
