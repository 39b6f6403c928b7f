// Kernels for FakeDriver: device/ on the host, one thread a block, behind xccl_kernel and xccl_kernel_info.
#pragma once

#include <functional>

#include "device/abi.h"
#include "device/host.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "runtime/cuda/fake_driver.h"

namespace xccl::cuda {

// `kernel`: absent: the interpreter kernel. `check` sees the arguments of every launch.
void AddHostKernel(FakeDriver& driver, const device::HostKernel* kernel, DataType type, ReduceOp op,
                   Protocol protocol, const std::function<void(const device::LaunchArgs&)>& check = {});

// A kernel of this program's own for float sums with protocol simple. Messages go through slots. Requires: no
// two threadblocks of a rank would be merged.
void AddTestKernel(FakeDriver& driver, const Program& program, const Collective& collective);

}  // namespace xccl::cuda
