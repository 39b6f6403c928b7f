// Chunks of nearly the sizes that a plan wants, as few equal units: other executors cut buffers into equal
// chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/collective.h"

namespace xccl {

struct RoundedParts {
  Collective collective;
  std::string text;  // a warning
};

// The collective with chunks that are whole numbers of the fewest units of a part, of which there are at most
// `most_units`; absent: no number of units up to that brings every chunk within 0.5 % of its size.
std::optional<RoundedParts> RoundedWeights(const Collective& collective, int32_t most_units);

}  // namespace xccl
