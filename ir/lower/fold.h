// Pass "fold": waves become one chunk. Waves are the smaller chunks into which an engine cuts a chunk so that
// a schedule, which moves whole chunks, overlaps its steps. A program overlaps its passes by itself, and
// needs an instruction for every wave that is left.
#pragma once

#include <optional>

#include "ir/collective.h"
#include "ir/schedule.h"

namespace xccl::lowering {

struct Folded {
  Schedule schedule;
  Collective collective;  // the same parts in fewer chunks
};

// Joins neighbouring chunks of a part that take the same paths in the same order. The joint chunk is as large
// as they are together and moves in the steps of the first. Guarantees that the result is normalized and
// verifies. Absent where no two neighbours are alike. Linear in the chunks of all transfers, beside sorting
// those of a chunk and step. Requires: a normalized schedule that verifies, without symmetry.
std::optional<Folded> FoldWaves(const Schedule& schedule, const Collective& collective);

}  // namespace xccl::lowering
