// One schedule after another.
#pragma once

#include "ir/schedule.h"

namespace xccl {

// All of `first`, then all of `second`, normalized: reduce_scatter then allgather is an allreduce, reduce
// then broadcast too. Requires: the same chunks and symmetry in both, and that `second` starts from what
// `first` leaves.
Schedule Compose(const Schedule& first, const Schedule& second);

}  // namespace xccl
