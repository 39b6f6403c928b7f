// Work in which a failed check ends the work and not the process: one of several searches, of which the
// others can still succeed.
#pragma once

#include "base/check.h"
#include "base/status.h"

namespace xccl {

// What `work` returns, a Status or StatusOr; kBug "FILE:LINE: check failed: TEXT" where a check fails in it
// on this thread. Threads that it starts abort as ever. Requires: what `work` leaves behind, beside its
// result, is not used afterwards.
template <typename Work>
auto RunGuarded(Work&& work) -> decltype(work()) {
  const ChecksThrow guard;
  try {
    return work();
  } catch (const CheckFailure& failure) {
    return BugError(failure.what());
  }
}

}  // namespace xccl
