// Joins two schedules into a schedule that runs them one after the other.
#pragma once

#include "ir/schedule.h"

namespace xccl {

// Returns the normalized schedule that runs all of `first` and then all of `second`. For example,
// reduce_scatter and allgather make an allreduce, and so do reduce and broadcast. Requires that both
// schedules have the same chunks and symmetry, and that `second` starts from the data that `first` leaves.
Schedule Compose(const Schedule& first, const Schedule& second);

}  // namespace xccl
