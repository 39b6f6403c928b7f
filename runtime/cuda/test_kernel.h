// A kernel for FakeDriver that runs a Program through the ABI of device/abi.h: one host thread a block,
// staged slots, float sums, every chunk by itself. Slow and plain; it checks what the host side prepares.
#pragma once

#include <memory>

#include "device/abi.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "runtime/cuda/fake_driver.h"

namespace xccl::cuda {

// Registers xccl_kernel and xccl_kernel_info. Requires: protocol simple, parts of equal size.
void AddTestKernel(FakeDriver& driver, const Program& program, const Collective& collective);

}  // namespace xccl::cuda
