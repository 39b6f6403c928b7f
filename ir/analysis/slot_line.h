// All buffer slots of a rank, numbered on one line: input and output, then scratch. In place, input and
// output overlap, so that buffer slots which share memory have one number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

class SlotLine {
 public:
  // `in_place`: input and output share memory, if the collective has an in-place form for the rank.
  SlotLine(const Program& program, const Collective& collective, Rank rank, bool in_place);

  size_t size() const { return size_; }
  size_t SlotOf(const Operand& operand) const;

 private:
  size_t input_at_ = 0, output_at_ = 0, scratch_at_ = 0, size_ = 0;
};

}  // namespace xccl
