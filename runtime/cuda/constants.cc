#include "runtime/cuda/constants.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace xccl::cuda {
namespace {

constexpr size_t kChunkBytes = 1 << 20, kMostBytes = 64 << 20, kAlignment = 128;

}  // namespace

Status ConstantTables::Write(const std::shared_ptr<const Gpu>& gpu, DevicePointer to, const void* from,
                             size_t bytes) {
  return RunAlone(
      gpu, fmt::format("cuMemcpyHtoDAsync of {} bytes", bytes),
      [&](const Driver& driver, Stream stream) { return driver.MemcpyHtoDAsync(to, from, bytes, stream); });
}

StatusOr<DevicePointer> ConstantTables::Put(const std::string& bytes) {
  if (const auto at = known_.find(bytes); at != known_.end()) return at->second;
  const size_t size = (bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  if (all_ + size > kMostBytes)
    return LimitReached(
        fmt::format("cuda: tables of {} bytes for calls of different sizes; the limit is {} bytes",
                    all_ + size, kMostBytes));
  if (chunks_.empty() || used_ + size > chunks_.back().bytes()) {
    const CaptureRelaxed relaxed(*gpu_);
    XCCL_ASSIGN_OR_RETURN(DeviceMemory chunk, DeviceMemory::Create(gpu_, std::max(size, kChunkBytes),
                                                                   Sharing::kNone, {}, "tables"));
    chunks_.push_back(std::move(chunk));
    used_ = 0;
  }
  const DevicePointer at = chunks_.back().address() + used_;
  XCCL_RETURN_IF_ERROR(Write(gpu_, at, bytes.data(), bytes.size()));
  used_ += size;
  all_ += size;
  known_.emplace(bytes, at);
  return at;
}

}  // namespace xccl::cuda
