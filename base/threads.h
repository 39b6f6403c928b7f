// Threads whose start may fail with a Status, where std::thread throws.
#pragma once

#include <functional>
#include <thread>

#include "base/status.h"

namespace xccl {

// Runs `work` on a thread, which the caller joins. No exception may leave `work`. Errors: kSystem "cannot
// start a thread: REASON".
StatusOr<std::thread> StartThread(std::function<void()> work);

}  // namespace xccl
