// Processes as containers have them: each numbers its own, from 1 on.
#pragma once

#include <sys/types.h>

#include <functional>

namespace xccl::testing {

// Whether this user may make name spaces.
bool CanMakeNamespaces();
// Runs `child` in a process that is number 1 of a name space of its own; the exit status of the process whose
// number is returned is what `child` returns. Requires: CanMakeNamespaces.
pid_t ForkIntoNamespace(const std::function<int()>& child);

}  // namespace xccl::testing
