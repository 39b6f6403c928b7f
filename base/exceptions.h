// Turns an exception of the C++ library into a Status, in the places that no exception may leave: main, the C
// API, threads and child processes.
#pragma once

#include <exception>

#include "base/status.h"

namespace xccl {

// kSystem "out of memory", or the system's reason such as "Resource temporarily unavailable"; any other
// exception is kBug "unexpected exception: TEXT".
Status StatusOf(const std::exception& error);

}  // namespace xccl
