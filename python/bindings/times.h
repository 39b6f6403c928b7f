// Times of plans for Python, and the sizes that they are for.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/collective.h"
#include "pipeline/predict.h"
#include "python/bindings/bindings.h"

namespace xccl::python {

// The rows of simulate and compare, by column.
py::dict ColumnsOf(const std::vector<PlanTime>& times);

// Throws where a size is none that the collective can have.
void CheckSizes(const std::vector<int64_t>& sizes, const Collective& collective);

}  // namespace xccl::python
