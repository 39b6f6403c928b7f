#include "ir/analysis/slot_line.h"

#include <algorithm>
#include <optional>

namespace xccl {

SlotLine::SlotLine(const Program& program, const Collective& collective, Rank rank, bool in_place) {
  const auto slots = [&](BufferKind kind) { return SlotChunks(program, collective, rank, kind).size(); };
  const size_t inputs = slots(BufferKind::kInput), outputs = slots(BufferKind::kOutput);
  output_at_ = inputs;
  if (const std::optional<int32_t> shift = InPlaceShift(collective, rank); in_place && shift) {
    input_at_ = static_cast<size_t>(std::max(*shift, 0));
    output_at_ = static_cast<size_t>(std::max(-*shift, 0));
  }
  scratch_at_ = std::max(input_at_ + inputs, output_at_ + outputs);
  size_ = scratch_at_ + slots(BufferKind::kScratch);
}

size_t SlotLine::SlotOf(const Operand& operand) const {
  const size_t slot = static_cast<size_t>(operand.slot);
  switch (operand.buffer) {
    case BufferKind::kInput:
      return input_at_ + slot;
    case BufferKind::kOutput:
      return output_at_ + slot;
    case BufferKind::kScratch:
      return scratch_at_ + slot;
  }
  return 0;
}

}  // namespace xccl
