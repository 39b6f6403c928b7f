// The CPU's back ends for communicators: ranks that are threads of this process, and ranks of this host that
// meet under a name in POSIX shared memory.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/backend.h"

namespace xccl {

// One back end per rank; connecting never waits for the other ranks.
std::vector<Backend> ThreadBackends(int32_t ranks);

// Rank 0 makes each region. The others find it, waiting for at most `time_limit`; when all have it, its name
// is removed. `name`: letters, digits, dots and dashes, the same on all ranks and on no other run of this
// host. A rank whose process ends fails the operations of the others.
Backend SharedMemoryBackend(const std::string& name, Rank rank, std::chrono::nanoseconds time_limit);

}  // namespace xccl
