// FakeDriver's memory: every allocation is a memfd, mapped where the caller wants it.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "runtime/testing/cuda/fake_state.h"

namespace xccl::cuda::fake {
namespace {

int MakeFile(size_t bytes) {
  const int file = memfd_create("fake-device-memory", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    return -1;
  }
  return file;
}

// Handles that travel as bytes name the process and its file.
struct Named {
  int32_t process = 0, file = -1;
  uint64_t bytes = 0;
};
int OpenNamed(const Named& named) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", named.process, named.file);
  FILE* file = std::fopen(path, "r+e");
  if (file == nullptr) return -1;
  const int copy = dup(fileno(file));
  std::fclose(file);
  return copy;
}

bool Reserve(size_t bytes) {
  if (bytes > state->options.memory_bytes - state->in_use) return false;
  state->in_use += bytes;
  return true;
}

void Drop(std::map<MemoryHandle, Physical>::iterator at) {
  if (--at->second.references > 0) return;
  Physical& gone = at->second;
  if (!gone.imported && gone.multicast == nullptr) state->in_use -= gone.bytes;
  if (gone.multicast != nullptr) munmap(gone.multicast, kMulticastFileBytes);
  for (const auto& [copy, bytes] : gone.copies) munmap(copy, bytes);
  close(gone.file);
  state->physical.erase(at);
}

bool Complete(const Multicast& multicast) {
  return static_cast<uint32_t>(std::popcount(multicast.joined.load())) == multicast.team;
}
Multicast* MapMulticast(int file) {
  void* const at = mmap(nullptr, kMulticastFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  XCCL_CHECK(at != MAP_FAILED);
  return static_cast<Multicast*>(at);
}
Multicast* MulticastOf(MemoryHandle handle) {
  const auto at = state->physical.find(handle);
  return at == state->physical.end() ? nullptr : at->second.multicast;
}

void FillAllocations(Driver& d) {
  d.MemGetInfo = [](size_t* free, size_t* total) {
    *total = state->options.memory_bytes;
    *free = state->options.memory_bytes - state->in_use;
    return EndOf(BeginInContext(), true);
  };
  d.MemAlloc = [](DevicePointer* memory, size_t bytes) {
    if (const auto error = BeginUnsafe()) return *error;
    const std::lock_guard lock(state->mutex);
    if (bytes == 0) return Result::kInvalidValue;
    if (!Reserve(bytes)) return Result::kOutOfMemory;
    const int file = MakeFile(bytes);
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    XCCL_CHECK(at != MAP_FAILED);
    *memory = Device(at);
    state->allocations[*memory] = {file, bytes, current.back()->device, false, false, state->next_id++};
    ReachChanged();
    return Result::kSuccess;
  };
  const auto drop = [](DevicePointer memory, bool imported) {
    auto error = BeginInContext();
    if (!error)
      if (const Result idle = AwaitLaunched(current.back()); idle != Result::kSuccess) error = idle;
    const std::lock_guard lock(state->mutex);
    const auto at = state->allocations.find(memory);
    if (at == state->allocations.end() || at->second.imported != imported || at->second.of_test)
      return Result::kInvalidValue;
    munmap(Host(memory), at->second.bytes);
    close(at->second.file);
    if (!imported) state->in_use -= at->second.bytes;
    state->allocations.erase(at);
    ReachChanged();
    return EndOf(error, true);
  };
  static const auto shared_drop = drop;
  d.MemFree = [](DevicePointer memory) { return shared_drop(memory, false); };
  d.IpcCloseMemHandle = [](DevicePointer memory) { return shared_drop(memory, true); };
  d.IpcGetMemHandle = [](IpcHandle* handle, DevicePointer memory) {
    if (const auto error = BeginInContext()) return *error;
    const std::lock_guard lock(state->mutex);
    const auto at = state->allocations.find(memory);
    if (at == state->allocations.end()) return Result::kInvalidValue;
    const Named named{getpid(), at->second.file, at->second.bytes};
    std::memcpy(handle->data, &named, sizeof named);
    return Result::kSuccess;
  };
  d.IpcOpenMemHandle = [](DevicePointer* memory, IpcHandle handle, unsigned) {
    if (const auto error = BeginInContext()) return *error;
    Named named;
    std::memcpy(&named, handle.data, sizeof named);
    // As with the real driver, a process cannot open its own handle.
    if (named.process == getpid()) return Result::kInvalidContext;
    const int file = OpenNamed(named);
    if (file < 0) return Result::kInvalidValue;
    void* at = mmap(nullptr, named.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    XCCL_CHECK(at != MAP_FAILED);
    const std::lock_guard lock(state->mutex);
    *memory = Device(at);
    state->allocations[*memory] = {file, named.bytes, current.back()->device, true, false, state->next_id++};
    ReachChanged();
    return Result::kSuccess;
  };
}

void FillHostMemory(Driver& d) {
  d.MemHostAlloc = [](void** memory, size_t bytes, unsigned) {
    if (const auto error = BeginUnsafe()) return *error;
    const std::lock_guard lock(state->mutex);
    *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    state->host[*memory] = bytes;
    ReachChanged();
    return Result::kSuccess;
  };
  d.MemHostGetDevicePointer = [](DevicePointer* device, void* host, unsigned) {
    *device = Device(host);
    return EndOf(BeginInContext(), true);
  };
  d.MemFreeHost = [](void* memory) {
    const auto error = BeginInContext();
    const std::lock_guard lock(state->mutex);
    if (state->host.erase(memory) == 0) return Result::kInvalidValue;
    ReachChanged();
    std::free(memory);
    return EndOf(error, true);
  };
}

void FillRanges(Driver& d) {
  d.MemGetAddressRange = [](DevicePointer* base, size_t* bytes, DevicePointer inside) {
    if (const auto error = BeginInContext()) return *error;
    const std::lock_guard lock(state->mutex);
    for (const auto& [at, allocation] : state->allocations)
      if (inside >= at && inside < at + allocation.bytes) {
        if (base != nullptr) *base = at;
        if (bytes != nullptr) *bytes = allocation.bytes;
        return Result::kSuccess;
      }
    for (const auto& [at, mapping] : state->mappings)
      if (inside >= at && inside < at + mapping.bytes) {
        if (base != nullptr) *base = at;
        if (bytes != nullptr) *bytes = mapping.bytes;
        return Result::kSuccess;
      }
    return Result::kInvalidValue;
  };
  // As with the real driver, whole pages; here those of hosts with large ones.
  d.MemGetHandleForAddressRange = [](void* file, DevicePointer address, size_t bytes, int32_t type,
                                     Driver::U64) {
    if (const auto error = BeginInContext()) return *error;
    const std::lock_guard lock(state->mutex);
    if (!state->options.dma_buf) return Result::kNotSupported;
    const size_t page = 64 << 10;
    if (type != kDmaBufFile || address % page != 0 || bytes == 0 || bytes % page != 0)
      return Result::kInvalidValue;
    for (const auto& [at, allocation] : state->allocations)
      if (address >= at && address + bytes <= at + allocation.bytes) {
        *static_cast<int*>(file) = dup(allocation.file);
        return Result::kSuccess;
      }
    return Result::kInvalidValue;
  };
  d.FlushGPUDirectRDMAWrites = [](int32_t target, int32_t scope) {
    if (const auto error = BeginInContext()) return *error;
    const std::lock_guard lock(state->mutex);
    if (!state->options.rdma) return Result::kNotSupported;
    if (state->flushed) state->flushed();
    return target == kToCurrent && scope == kToOwner ? Result::kSuccess : Result::kInvalidValue;
  };
}

void FillCopies(Driver& d) {
  d.MemcpyHtoDAsync = [](DevicePointer to, const void* from, size_t bytes, Stream stream) {
    if (const auto error = BeginInContext()) return *error;
    Queue(stream).Add([=] { std::memcpy(Host(to), from, bytes); });
    return Result::kSuccess;
  };
  d.MemcpyDtoHAsync = [](void* to, DevicePointer from, size_t bytes, Stream stream) {
    if (const auto error = BeginInContext()) return *error;
    Queue(stream).Add([=] { std::memcpy(to, Host(from), bytes); });
    return Result::kSuccess;
  };
  d.MemcpyDtoDAsync = [](DevicePointer to, DevicePointer from, size_t bytes, Stream stream) {
    if (const auto error = BeginInContext()) return *error;
    Queue(stream).Add([=] { std::memmove(Host(to), Host(from), bytes); });
    return Result::kSuccess;
  };
  d.MemsetD8Async = [](DevicePointer to, unsigned char value, size_t bytes, Stream stream) {
    if (const auto error = BeginInContext()) return *error;
    Queue(stream).Add([=] { std::memset(Host(to), value, bytes); });
    return Result::kSuccess;
  };
}

Result NewHandle(MemoryHandle* handle, Physical physical) {
  if (physical.file < 0) return Result::kInvalidValue;
  *handle = state->next_handle++;
  state->physical[*handle] = std::move(physical);
  return Result::kSuccess;
}

void FillPhysicalMemory(Driver& d) {
  d.MemGetAllocationGranularity = [](size_t* bytes, const AllocationProperties*, int32_t) {
    *bytes = state->options.granularity;
    return EndOf(Begin(), state->options.virtual_memory);
  };
  d.MemCreate = [](MemoryHandle* handle, size_t bytes, const AllocationProperties* properties, Driver::U64) {
    if (const auto error = Begin()) return *error;
    const std::lock_guard lock(state->mutex);
    const FakeOptions& o = state->options;
    if (!o.virtual_memory) return Result::kNotSupported;
    if (properties->handle_types == HandleType::kPosixFileDescriptor && !o.file_descriptors)
      return Result::kNotSupported;
    if (bytes == 0 || bytes % o.granularity != 0) return Result::kInvalidValue;
    if (!Reserve(bytes)) return Result::kOutOfMemory;
    return NewHandle(handle, {.file = MakeFile(bytes), .bytes = bytes, .device = properties->location.id});
  };
  d.MemRelease = [](MemoryHandle handle) {
    const auto error = Begin();
    const std::lock_guard lock(state->mutex);
    const auto at = state->physical.find(handle);
    if (at == state->physical.end() || at->second.handles == 0) return Result::kInvalidValue;
    --at->second.handles;
    Drop(at);
    return EndOf(error, true);
  };
  d.MemAddressReserve = [](DevicePointer* address, size_t bytes, size_t, DevicePointer, Driver::U64) {
    if (const auto error = Begin()) return *error;
    const std::lock_guard lock(state->mutex);
    if (bytes == 0 || bytes % state->options.granularity != 0) return Result::kInvalidValue;
    void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    XCCL_CHECK(at != MAP_FAILED);
    *address = Device(at);
    state->reservations[*address] = bytes;
    return Result::kSuccess;
  };
  d.MemAddressFree = [](DevicePointer address, size_t bytes) {
    const auto error = Begin();
    const std::lock_guard lock(state->mutex);
    const auto at = state->reservations.find(address);
    if (at == state->reservations.end() || at->second != bytes) return Result::kInvalidValue;
    munmap(Host(address), bytes);
    state->reservations.erase(at);
    return EndOf(error, true);
  };
}

void FillMappings(Driver& d) {
  d.MemMap = [](DevicePointer address, size_t bytes, size_t offset, MemoryHandle handle, Driver::U64) {
    if (const auto error = Begin()) return *error;
    const std::lock_guard lock(state->mutex);
    const auto at = state->physical.find(handle);
    if (at == state->physical.end() || offset != 0 ||
        (at->second.multicast == nullptr && bytes > at->second.bytes))
      return Result::kInvalidValue;
    if (const Multicast* const multicast = at->second.multicast) {
      // No memory lies there: only a switch can use the addresses.
      if (!Complete(*multicast) || bytes > multicast->bytes) return Result::kNotReady;
    } else {
      void* mapped = mmap(Host(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, at->second.file, 0);
      XCCL_CHECK(mapped != MAP_FAILED);
    }
    ++at->second.references;
    state->mappings[address] = {bytes, handle, {}, state->next_id++};
    ReachChanged();
    return Result::kSuccess;
  };
  d.MemUnmap = [](DevicePointer address, size_t bytes) {
    const auto error = Begin();
    const std::lock_guard lock(state->mutex);
    const auto at = state->mappings.find(address);
    if (at == state->mappings.end() || at->second.bytes != bytes) return Result::kInvalidValue;
    const void* reserved =
        mmap(Host(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    XCCL_CHECK(reserved != MAP_FAILED);
    Drop(state->physical.find(at->second.handle));
    state->mappings.erase(at);
    ReachChanged();
    return EndOf(error, true);
  };
  d.MemSetAccess = [](DevicePointer address, size_t bytes, const AccessDescription* access, size_t count) {
    if (const auto error = Begin()) return *error;
    const std::lock_guard lock(state->mutex);
    const auto at = state->mappings.find(address);
    if (at == state->mappings.end() || count == 0) return Result::kInvalidValue;
    const Physical& physical = state->physical[at->second.handle];
    for (size_t i = 0; i < count; ++i) {
      const DeviceId device = access[i].location.id;
      const bool reaches = physical.multicast != nullptr
                               ? (physical.multicast->joined.load() >> device & 1) != 0
                               : state->options.peers || device == physical.device;
      if (!reaches) return Result::kInvalidDevice;
      at->second.access.insert(device);
    }
    if (physical.multicast == nullptr) mprotect(Host(address), bytes, PROT_READ | PROT_WRITE);
    ReachChanged();
    return Result::kSuccess;
  };
}

void FillSharing(Driver& d) {
  d.MemExportToShareableHandle = [](void* out, MemoryHandle handle, HandleType type, Driver::U64) {
    if (const auto error = Begin()) return *error;
    const std::lock_guard lock(state->mutex);
    const auto at = state->physical.find(handle);
    if (at == state->physical.end()) return Result::kInvalidValue;
    if (type != HandleType::kPosixFileDescriptor) return Result::kNotSupported;
    *static_cast<int*>(out) = dup(at->second.file);
    return Result::kSuccess;
  };
  d.MemImportFromShareableHandle = [](MemoryHandle* handle, void* from, HandleType type) {
    if (const auto error = Begin()) return *error;
    if (type != HandleType::kPosixFileDescriptor) return Result::kNotSupported;
    const int file = dup(static_cast<int>(reinterpret_cast<intptr_t>(from)));
    const off_t bytes = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    if (bytes <= 0) return Result::kInvalidValue;
    const std::lock_guard lock(state->mutex);
    Physical physical = {.file = file, .bytes = static_cast<size_t>(bytes), .imported = true};
    if (physical.bytes == kMulticastFileBytes) physical.multicast = MapMulticast(file);
    return NewHandle(handle, std::move(physical));
  };
  d.MemRetainAllocationHandle = [](MemoryHandle* handle, void* address) {
    if (const auto error = Begin()) return *error;
    const std::lock_guard lock(state->mutex);
    for (const auto& [at, mapping] : state->mappings)
      if (Device(address) >= at && Device(address) < at + mapping.bytes) {
        *handle = mapping.handle;
        Physical& physical = state->physical[mapping.handle];
        ++physical.references;
        ++physical.handles;
        return Result::kSuccess;
      }
    return Result::kInvalidValue;
  };
}

void FillMulticast(Driver& d) {
  d.MulticastGetGranularity = [](size_t* bytes, const MulticastProperties*, int32_t) {
    *bytes = 2 * state->options.granularity;
    return EndOf(Begin(), state->options.multicast);
  };
  d.MulticastCreate = [](MemoryHandle* handle, const MulticastProperties* properties) {
    if (const auto error = Begin()) return *error;
    const std::lock_guard lock(state->mutex);
    // As with the real driver, a team of one is refused.
    if (!state->options.multicast || properties->devices < 2 ||
        properties->size % (2 * state->options.granularity) != 0)
      return Result::kInvalidValue;
    const int file = MakeFile(kMulticastFileBytes);
    Multicast* const made = MapMulticast(file);
    made->bytes = properties->size;
    made->team = properties->devices;
    return NewHandle(handle, {.file = file, .bytes = kMulticastFileBytes, .multicast = made});
  };
  d.MulticastAddDevice = [](MemoryHandle handle, DeviceId device) {
    if (const auto error = Begin()) return *error;
    const std::lock_guard lock(state->mutex);
    Multicast* const multicast = MulticastOf(handle);
    if (multicast == nullptr || Complete(*multicast)) return Result::kInvalidValue;
    const uint64_t bit = uint64_t{1} << device;
    return EndOf({}, (multicast->joined.fetch_or(bit) & bit) == 0);
  };
  d.MulticastBindMem = [](MemoryHandle handle, size_t at, MemoryHandle memory, size_t offset, size_t bytes,
                          Driver::U64) {
    if (const auto error = Begin()) return *error;
    const std::lock_guard lock(state->mutex);
    Multicast* const multicast = MulticastOf(handle);
    const auto part = state->physical.find(memory);
    const size_t granularity = 2 * state->options.granularity;
    if (multicast == nullptr || part == state->physical.end() || part->second.multicast != nullptr ||
        at != 0 || bytes != multicast->bytes || offset % granularity != 0 ||
        offset + bytes > part->second.bytes || (multicast->joined.load() >> part->second.device & 1) == 0)
      return Result::kInvalidValue;
    // The real driver waits.
    if (!Complete(*multicast)) return Result::kNotReady;
    const uint32_t place = multicast->binds.fetch_add(1);
    XCCL_CHECK(place < std::size(multicast->bound));
    Multicast::Bound& bound = multicast->bound[place];
    bound.file = part->second.file;
    bound.device = part->second.device;
    bound.offset = offset;
    bound.process.store(getpid());
    return Result::kSuccess;
  };
  d.MulticastUnbind = [](MemoryHandle handle, DeviceId device, size_t, size_t) {
    const auto error = Begin();
    const std::lock_guard lock(state->mutex);
    Multicast* const multicast = MulticastOf(handle);
    if (multicast == nullptr) return Result::kInvalidValue;
    for (Multicast::Bound& bound : multicast->bound) {
      if (bound.process.load() != getpid() || bound.device != device) continue;
      bound.process.store(0);
      return EndOf(error, true);
    }
    return Result::kInvalidValue;
  };
}

}  // namespace

void* Allocate(size_t bytes, DeviceId device) {
  const std::lock_guard lock(state->mutex);
  bytes = std::max<size_t>(bytes, 1);
  const int file = MakeFile(bytes);
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  XCCL_CHECK(at != MAP_FAILED);
  state->allocations[Device(at)] = {file, bytes, device, false, true, state->next_id++};
  ReachChanged();
  return at;
}

void FreeAllocated() {
  for (const auto& [at, allocation] : state->allocations) {
    if (!allocation.of_test) continue;
    munmap(Host(at), allocation.bytes);
    close(allocation.file);
  }
}

void FillMemory(Driver& d) {
  FillAllocations(d);
  FillHostMemory(d);
  FillRanges(d);
  FillCopies(d);
}

std::vector<char*> CopiesAt(DevicePointer address) {
  const std::lock_guard lock(state->mutex);
  auto at = state->mappings.upper_bound(address);
  if (at == state->mappings.begin()) return {};
  --at;
  Physical& physical = state->physical[at->second.handle];
  if (physical.multicast == nullptr || address - at->first >= at->second.bytes) return {};
  if (physical.copies.empty()) {
    for (const Multicast::Bound& bound : physical.multicast->bound) {
      if (bound.process.load() == 0) continue;
      const int file = OpenNamed({bound.process.load(), bound.file, 0});
      const size_t bytes = physical.multicast->bytes;
      void* const copy =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(bound.offset));
      XCCL_CHECK(copy != MAP_FAILED);
      close(file);
      physical.copies.emplace_back(static_cast<char*>(copy), bytes);
    }
  }
  std::vector<char*> copies;
  for (const auto& [copy, bytes] : physical.copies) copies.push_back(copy + (address - at->first));
  return copies;
}

void FillVirtualMemory(Driver& d) {
  FillPhysicalMemory(d);
  FillMappings(d);
  FillSharing(d);
  FillMulticast(d);
}

}  // namespace xccl::cuda::fake
