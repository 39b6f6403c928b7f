// The Device of the CPU back end: ordinary memory, in huge pages where the system gives them.
#pragma once

#include "runtime/device.h"

namespace xccl {

class CpuDevice final : public Device {
 public:
  std::string_view name() const override { return "cpu"; }
  StatusOr<std::byte*> Allocate(int64_t bytes) override;
  void Free(std::byte* memory, int64_t bytes) override;
  void Copy(std::byte* dst, const std::byte* src, int64_t bytes, bool last_use) const override;
  void Reduce(DataType type, ReduceOp op, std::byte* dst, const std::byte* local, const std::byte* received,
              int64_t elements, bool last_use) const override;
  void ReduceMembers(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> members,
                     int64_t elements) const override;
  void Scale(DataType type, ReduceOp op, int32_t n, std::byte* dst, const std::byte* src,
             int64_t elements) const override;
  void Finish(DataType type, ReduceOp op, int32_t n, std::byte* data, int64_t elements) const override;
};

}  // namespace xccl
