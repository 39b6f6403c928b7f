// Decides which memory a device of FakeDriver reaches. Memory has owners, and kernels ask before each access.
#include <array>
#include <atomic>
#include <utility>

#include "runtime/testing/cuda/fake_state.h"

namespace xccl::cuda::fake {
namespace {

// Grows whenever the memory that some device reaches changes, in any FakeDriver of the process. An access
// that a thread has seen allowed stays allowed while the number stays.
std::atomic<int64_t> reach_version = 0;

struct Reach {
  DevicePointer begin = 0, end = 0;
};

bool Holds(const Reach& reach, DevicePointer at, size_t bytes) {
  return at >= reach.begin && at + bytes <= reach.end;
}

// The entry of a map from addresses that begins at or before `at`; its end where there is none.
template <typename Map, typename Key>
auto Before(const Map& map, Key at) {
  auto next = map.upper_bound(at);
  return next == map.begin() ? map.end() : std::prev(next);
}

// The memory around `at` that the device reaches; empty where it reaches none. `id`: that of the allocation.
Reach ReachAround(DeviceId device, DevicePointer at, uint64_t& id) {
  const ContextObject& context = state->contexts[static_cast<size_t>(device)];
  if (const auto found = Before(state->allocations, at); found != state->allocations.end()) {
    const auto& [begin, allocation] = *found;
    const bool peer = !allocation.imported && context.peers.contains(allocation.device);
    if (at < begin + allocation.bytes) id = allocation.id;
    if (at < begin + allocation.bytes)
      return allocation.device == device || peer ? Reach{begin, begin + allocation.bytes} : Reach{};
  }
  if (const auto found = Before(state->mappings, at); found != state->mappings.end()) {
    const auto& [begin, mapping] = *found;
    if (at < begin + mapping.bytes) id = mapping.id;
    if (at < begin + mapping.bytes)
      return mapping.access.contains(device) ? Reach{begin, begin + mapping.bytes} : Reach{};
  }
  if (const auto found = Before(state->host, Host(at)); found != state->host.end()) {
    const Reach host{Device(found->first), Device(found->first) + found->second};
    if (at < host.end) return host;
  }
  return {};
}

}  // namespace

void ReachChanged() { ++reach_version; }

bool Allows(DeviceId device, DevicePointer at, size_t bytes) {
  // The memory that this thread used last: a copy's source and destination, slots and counters.
  struct Seen {
    int64_t version = -1;
    DeviceId device = 0;
    std::array<Reach, 8> reaches = {};
    size_t next = 0;
  };
  thread_local Seen seen;
  const int64_t version = reach_version.load();
  if (seen.version != version || seen.device != device) seen = {.version = version, .device = device};
  for (const Reach& reach : seen.reaches)
    if (Holds(reach, at, bytes)) return true;
  const std::lock_guard lock(state->mutex);
  ContextObject& context = state->contexts[static_cast<size_t>(device)];
  if (context.failed != Result::kSuccess) return false;
  uint64_t id = 0;
  const Reach reach = ReachAround(device, at, id);
  if (!Holds(reach, at, bytes)) {
    context.failed = Result::kIllegalAddress;
    ReachChanged();  // the context's other kernels end, too
    return false;
  }
  seen.reaches[seen.next++ % seen.reaches.size()] = reach;
  return true;
}

void FillAccess(Driver& d) {
  d.CtxEnablePeerAccess = [](Context peer, unsigned) {
    if (const auto error = BeginInContext()) return *error;
    const std::lock_guard lock(state->mutex);
    ContextObject& context = *current.back();
    if (peer == &context) return Result::kInvalidDevice;
    if (!state->options.peers) return Result::kPeerAccessUnsupported;
    if (context.peers.contains(peer->device)) return Result::kPeerAccessAlreadyEnabled;
    if (context.peers.size() >= static_cast<size_t>(state->options.most_peers)) return Result::kTooManyPeers;
    context.peers.insert(peer->device);
    ReachChanged();
    return Result::kSuccess;
  };
  d.PointerGetAttribute = [](void* value, PointerAttribute attribute, DevicePointer address) {
    if (const auto error = BeginInContext()) return *error;
    const std::lock_guard lock(state->mutex);
    uint64_t id = 0;
    const Reach reach = ReachAround(current.back()->device, address, id);
    if (id == 0) return Result::kInvalidValue;
    if (attribute == PointerAttribute::kBufferId)
      *static_cast<uint64_t*>(value) = id;
    else
      *static_cast<int32_t*>(value) = reach.end != 0 ? kReadWrite : 0;
    return Result::kSuccess;
  };
}

}  // namespace xccl::cuda::fake
