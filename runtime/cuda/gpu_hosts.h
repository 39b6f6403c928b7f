// Connects the GPUs of a communicator that is on several hosts.
#pragma once

#include <chrono>

#include "runtime/cuda/other_hosts.h"
#include "runtime/launched/launched_group.h"

namespace xccl {

// The group outlives the result and everything that is made with it.
cuda::OtherHosts OtherHostsOf(LaunchedGroup& group, std::chrono::nanoseconds time_limit);

}  // namespace xccl
