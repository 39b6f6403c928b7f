#include "runtime/cuda/peers.h"

namespace xccl::cuda {
namespace {

constexpr size_t kMostKnown = 4096;  // some 400 KB

}  // namespace

Status PeerReach::Enable() const {
  for (const std::shared_ptr<const Gpu>& gpu : gpus_)
    for (const std::shared_ptr<const Gpu>& peer : gpus_)
      if (peer != gpu) XCCL_RETURN_IF_ERROR(EnablePeerAccess(*gpu, *peer));
  return OkStatus();
}

bool PeerReach::Covers(DevicePointer address, size_t bytes) {
  if (bytes == 0) return true;
  uint64_t id = 0;
  {
    const Gpu& gpu = *gpus_[0];
    const ScopedContext context(gpu);
    if (gpu.driver().PointerGetAttribute(&id, PointerAttribute::kBufferId, address) != Result::kSuccess)
      return false;
  }
  const std::tuple key{id, address, bytes};
  const std::lock_guard lock(mutex_);
  if (const auto at = known_.find(key); at != known_.end()) return at->second;
  if (known_.size() >= kMostKnown) known_.clear();
  return known_.emplace(key, Ask(address, bytes)).first->second;
}

// A range may be of several mappings, one behind the other, each with its own access.
bool PeerReach::Ask(DevicePointer address, size_t bytes) const {
  const CaptureRelaxed relaxed(*gpus_[0]);
  for (DevicePointer at = address; at < address + bytes;) {
    for (const std::shared_ptr<const Gpu>& gpu : gpus_) {
      const ScopedContext context(*gpu);
      int32_t flags = 0;
      if (gpu->driver().PointerGetAttribute(&flags, PointerAttribute::kAccessFlags, at) != Result::kSuccess ||
          flags != kReadWrite)
        return false;
    }
    const ScopedContext context(*gpus_[0]);
    DevicePointer begin = 0;
    size_t size = 0;
    if (gpus_[0]->driver().MemGetAddressRange(&begin, &size, at) != Result::kSuccess || begin + size <= at)
      return false;
    at = begin + size;
  }
  return true;
}

}  // namespace xccl::cuda
