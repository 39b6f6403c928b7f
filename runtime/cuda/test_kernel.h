// Kernels for FakeDriver: device/ on the host, a few threads a block, behind xccl_kernel and
// xccl_kernel_info.
#pragma once

#include <functional>

#include "device/abi.h"
#include "device/host.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "runtime/testing/cuda/fake_driver.h"

namespace xccl::cuda {

// Two warps of two lanes: the fewest that show races between warps and within one.
inline constexpr device::HostShape kTestShape = {4, 2};

// `kernel`: absent: the interpreter kernel. `check` sees the arguments of every launch.
void AddHostKernel(FakeDriver& driver, const device::HostKernel* kernel, DataType type, ReduceOp op,
                   Protocol protocol, const std::function<void(const device::LaunchArgs&)>& check = {},
                   device::HostShape shape = kTestShape);

// A kernel of this program's own for float sums with protocol simple. Messages go through slots. Requires: no
// two threadblocks of a rank would be merged.
void AddTestKernel(FakeDriver& driver, const Program& program, const Collective& collective,
                   device::HostShape shape = kTestShape);

}  // namespace xccl::cuda
