// A collective as a value: rank i and rank i + n/2 exchange their data. What every rank holds before and
// after is all that there is to a collective; engines, verifiers and bounds follow from it.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/collective.h"

namespace xccl {

// Errors: kInvalidInput for an odd number of ranks.
StatusOr<Collective> SwapHalves(int32_t ranks);

}  // namespace xccl
