// The CPU's back ends for communicators: ranks that are threads of this process, and ranks that are
// processes, of this host or of several.
#pragma once

#include <vector>

#include "base/status.h"
#include "runtime/backend.h"
#include "runtime/launched/launched_group.h"

namespace xccl {

// One back end per rank; connecting never waits for the other ranks.
std::vector<Backend> ThreadBackends(int32_t ranks);

// This process's rank, the others being processes too. The group outlives the back end.
Backend ProcessBackend(LaunchedGroup& group);

}  // namespace xccl
