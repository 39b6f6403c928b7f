// Reads the plans of a book that a communicator can run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/served_plan.h"

namespace xccl {

// Reads and verifies the book's plans for this number of ranks, with their generated kernels where `kernels`
// is set. *hash: of the files that were read, so that ranks can compare. Errors: those of reading;
// kInvalidInput where there is no plan for `ranks`.
StatusOr<std::vector<ServedPlan>> ReadServedPlans(const std::string& directory, int32_t ranks, bool kernels,
                                                  uint64_t& hash);

}  // namespace xccl
