// The kernel of expert dispatch as a kernel of FakeDriver: a block is a few threads of this host.
#pragma once

#include "device/host.h"
#include "ir/numbers.h"
#include "runtime/experts/cuda/abi.h"
#include "runtime/testing/cuda/fake_driver.h"

namespace xccl::dispatch {

// Images are "fake"; the type of combine's rows is the driver's one kernel's.
void AddExpertKernel(cuda::FakeDriver& driver, DataType type, device::HostShape shape);

}  // namespace xccl::dispatch
