// Connects the GPUs of a communicator that is on several hosts.
#pragma once

#include <chrono>

#include "runtime/cpu/launched_group.h"
#include "runtime/cuda/proxy.h"

namespace xccl::c_api {

// The group outlives the result and everything that is made with it.
cuda::OtherHosts OtherHostsOf(LaunchedGroup& group, std::chrono::nanoseconds time_limit);

}  // namespace xccl::c_api
