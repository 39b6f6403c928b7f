// Where a rank's buffers lie, and who computes on them. One of the runtime's two interfaces (the other is
// Transport): a back end for other hardware implements both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "ir/numbers.h"

namespace xccl {

// Safe to share between threads. All functions are synchronous; their meaning is ir/numbers.h's.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;

  // Memory aligned to a page. Errors: kInvalidInput saying how much was asked for.
  virtual StatusOr<std::byte*> Allocate(int64_t bytes) = 0;
  virtual void Free(std::byte* memory, int64_t bytes) = 0;

  // Ranges either do not overlap or are the same. `last_use`: nobody reads dst soon, so it need not stay
  // cached.
  virtual void Copy(std::byte* dst, const std::byte* src, int64_t bytes, bool last_use) const = 0;
  // dst[i] = local[i] op received[i]. dst may be local or received.
  virtual void Reduce(DataType type, ReduceOp op, std::byte* dst, const std::byte* local,
                      const std::byte* received, int64_t elements, bool last_use) const = 0;
  // What a group receives: members[0][i] op members[1][i] op .., as ReduceMembersReference. dst overlaps
  // none.
  virtual void ReduceMembers(DataType type, ReduceOp op, std::byte* dst,
                             std::span<const std::byte* const> members, int64_t elements) const = 0;
  // avg of floating types: dst[i] = src[i] / n; other cases copy. dst may be src.
  virtual void Scale(DataType type, ReduceOp op, int32_t n, std::byte* dst, const std::byte* src,
                     int64_t elements) const = 0;
  // avg of integers: divides by n in place; other cases do nothing.
  virtual void Finish(DataType type, ReduceOp op, int32_t n, std::byte* data, int64_t elements) const = 0;
};

}  // namespace xccl
