// Joins two schedules, of which one runs after the other.
#pragma once

#include "ir/schedule.h"

namespace xccl {

// Runs all of `first`, then all of `second`; the result is normalized. reduce_scatter then allgather is an
// allreduce, and so is reduce then broadcast. Requires: the same chunks and symmetry in both, and that
// `second` starts from what `first` leaves.
Schedule Compose(const Schedule& first, const Schedule& second);

}  // namespace xccl
