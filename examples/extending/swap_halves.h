// A collective as a value: rank i and rank i + n/2 exchange their data. A collective consists of what every
// rank holds before and after; engines, verifiers and bounds follow from that.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/collective.h"

namespace xccl {

// Errors: kInvalidInput for an odd number of ranks.
StatusOr<Collective> SwapHalves(int32_t ranks);

}  // namespace xccl
