// All slots of a rank's buffers on one line: the input from its place on, the output, and scratch behind
// both. In place, input and output lie over each other, so that slots which share memory are one slot of the
// line.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

class SlotLine {
 public:
  // `in_place`: where the collective has an in-place form for the rank.
  SlotLine(const Program& program, const Collective& collective, Rank rank, bool in_place);

  size_t size() const { return size_; }
  size_t SlotOf(const Operand& operand) const;

 private:
  size_t input_at_ = 0, output_at_ = 0, scratch_at_ = 0, size_ = 0;
};

}  // namespace xccl
