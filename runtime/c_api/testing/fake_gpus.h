// GPUs of the C API that are this host's memory.
#pragma once

#include "runtime/testing/cuda/fake_driver.h"

namespace xccl::c_api {

// From here on GPUs are the driver's, and kernels of collectives are its functions. The driver outlives the
// communicators.
void UseFakeDriver(cuda::FakeDriver& fake);

}  // namespace xccl::c_api
