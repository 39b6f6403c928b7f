// Work in which a failed check ends the work and not the process: one of several searches, of which the
// others can still succeed.
#pragma once

#include "base/check.h"
#include "base/status.h"

namespace xccl {

// Calls `work` and returns its Status or StatusOr; kBug "FILE:LINE: check failed: TEXT" where a check fails
// in it on this thread. A failed check on a thread that `work` starts ends the process. Requires: nothing
// that `work` has changed, beside its result, is used after a failed check.
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
