#include "runtime/cpu/cpu_device.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "runtime/cpu/reduce.h"

namespace xccl {

StatusOr<std::byte*> CpuDevice::Allocate(int64_t bytes) {
  const size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return InvalidInput(fmt::format("memory of {} bytes: {}", bytes, std::strerror(errno)));
  // Advice only: small pages do too.
  madvise(memory, size, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

void CpuDevice::Free(std::byte* memory, int64_t bytes) {
  if (memory != nullptr) munmap(memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
}

void CpuDevice::Copy(std::byte* dst, const std::byte* src, int64_t bytes, bool) const {
  if (dst != src && bytes > 0) std::memcpy(dst, src, static_cast<size_t>(bytes));
}

void CpuDevice::Reduce(DataType type, ReduceOp op, std::byte* dst, const std::byte* local,
                       const std::byte* received, int64_t elements, bool) const {
  FindReduce(type, op)(dst, local, received, elements);
}

void CpuDevice::ReduceMembers(DataType type, ReduceOp op, std::byte* dst,
                              std::span<const std::byte* const> members, int64_t elements) const {
  const bool narrow = IsFloating(type) && SizeOf(type) < 4;
  if (narrow || members.size() < 2) {
    const std::vector<const void*> untyped(members.begin(), members.end());
    ReduceMembersReference(type, op, dst, untyped, elements);
    return;
  }
  const ReduceFunction reduce = FindReduce(type, op);
  reduce(dst, members[0], members[1], elements);
  for (const std::byte* member : members.subspan(2)) reduce(dst, dst, member, elements);
}

void CpuDevice::Scale(DataType type, ReduceOp op, int32_t n, std::byte* dst, const std::byte* src,
                      int64_t elements) const {
  ScaleReference(type, op, n, dst, src, elements);
}

void CpuDevice::Finish(DataType type, ReduceOp op, int32_t n, std::byte* data, int64_t elements) const {
  FinishReference(type, op, n, data, elements);
}

}  // namespace xccl
