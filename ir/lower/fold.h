// Pass "fold": joins waves into one chunk. A schedule moves whole chunks, so an engine cuts a chunk into
// smaller chunks, its waves, to overlap the steps. A program overlaps its passes without waves, and would
// need an instruction for every wave.
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
// as all of them together, and moves in the steps of the first chunk. The result is normalized and verifies.
// Returns nullopt if no two neighbours take the same paths. Cost: linear in the chunks of all transfers, plus
// sorting the transfers of each chunk. Requires a normalized schedule that verifies, without symmetry.
std::optional<Folded> FoldWaves(const Schedule& schedule, const Collective& collective);

}  // namespace xccl::lowering
