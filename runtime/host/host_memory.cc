#include "runtime/host/host_memory.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace xccl {

StatusOr<HostMemory> HostMemory::Map(int64_t bytes, int flags, int descriptor, const std::string& what) {
  const int64_t size = std::max<int64_t>(bytes, 1);
  void* const memory = mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (memory == MAP_FAILED)
    return SystemError(fmt::format("{} of {} bytes: {}", what, bytes, std::strerror(errno)));
  return HostMemory(memory, size);
}

StatusOr<HostMemory> HostMemory::Create(int64_t bytes) {
  XCCL_ASSIGN_OR_RETURN(HostMemory memory, Map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, "memory"));
  // Advice only: small pages do too.
  madvise(memory.data_, static_cast<size_t>(memory.bytes_), MADV_HUGEPAGE);
  return memory;
}

StatusOr<HostMemory> HostMemory::CreateShared(int64_t bytes) {
  return Map(bytes, MAP_SHARED | MAP_ANONYMOUS, -1, "shared memory");
}

HostMemory::HostMemory(HostMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostMemory::~HostMemory() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace xccl
