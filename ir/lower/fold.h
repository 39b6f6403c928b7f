// Waves folded back into one. An engine cuts a chunk into waves so that a schedule, which moves whole chunks,
// overlaps its steps; a program overlaps its passes by itself, and needs an instruction for each wave that is
// left.
#pragma once

#include <optional>

#include "ir/collective.h"
#include "ir/schedule.h"

namespace xccl::lowering {

struct Folded {
  Schedule schedule;
  Collective collective;  // the same parts in fewer chunks
};

// Neighbouring chunks of a part that take the same ways in the same order become one chunk, as large as they
// are together, which moves in the steps of the first of them. Absent where no two neighbours are alike.
// Linear in the chunks of all transfers, beside sorting those of a chunk and step. Requires: a normalized
// schedule that verifies, without symmetry.
std::optional<Folded> FoldWaves(const Schedule& schedule, const Collective& collective);

}  // namespace xccl::lowering
