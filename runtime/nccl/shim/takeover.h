// How the ranks of a communicator of NCCL's agree on whether plans run its calls. They meet by NCCL itself,
// at their first collective outside of a graph's capture: that is a moment that all ranks have in common,
// also for communicators that were split from others, or whose making does not block.
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "runtime/nccl/shim/coverage.h"
#include "runtime/nccl/shim/member.h"
#include "runtime/nccl/shim/nccl.h"

namespace xccl::nccl_shim {

// For the ranks that this thread drives, of one communicator or of several. Waits for the other ranks of
// each. `coverage`: a failure where this process has no plans, which the others then learn. Afterwards each
// member is kOurs on all of its communicator's ranks, or kNccls on all. Returns kSuccess, or the result of a
// call to NCCL that failed.
int TakeOver(const Nccl& nccl, const StatusOr<Coverage>& coverage,
             std::span<const std::shared_ptr<Member>> members);

}  // namespace xccl::nccl_shim
