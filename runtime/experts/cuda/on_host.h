// The kernel of expert dispatch as a kernel of FakeDriver: a block is a few threads of this host.
#pragma once

#include <string>

#include "device/host.h"
#include "ir/numbers.h"
#include "runtime/experts/cuda/abi.h"
#include "runtime/testing/cuda/fake_driver.h"

namespace xccl::dispatch {

// The kernel of an image, for combine's rows of a type.
void AddExpertKernel(cuda::FakeDriver& driver, DataType type, device::HostShape shape,
                     const std::string& image = cuda::FakeDriver::kAnyImage);

}  // namespace xccl::dispatch
