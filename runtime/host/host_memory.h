// Pages of this host's memory, owned: for buffers, for memory that child processes share, for regions with a
// name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace xccl {

// Movable owner of one mapping.
class HostMemory {
 public:
  // Zeroed memory of this process, in huge pages where the system gives them. Errors: kSystem saying how
  // much was asked for.
  static StatusOr<HostMemory> Create(int64_t bytes);
  // As Create, for memory that this process shares with processes forked from here on.
  static StatusOr<HostMemory> CreateShared(int64_t bytes);
  // A mapping with mmap's flags and descriptor. `what`: its name in errors.
  static StatusOr<HostMemory> Map(int64_t bytes, int flags, int descriptor, const std::string& what);

  HostMemory() = default;
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory();
  std::byte* data() const { return data_; }
  // The first `count` objects. Requires: they fit, and all zeros are a valid T.
  template <typename T>
  std::span<T> As(size_t count) const {
    return {reinterpret_cast<T*>(data_), count};
  }

 private:
  HostMemory(void* mapped, int64_t bytes) : data_(static_cast<std::byte*>(mapped)), bytes_(bytes) {}

  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace xccl
