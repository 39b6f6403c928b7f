// Written by emit_cases: the kernels of KernelCases(RANKS), or of GroupCases(), in order.
#pragma once

#include "device/host.h"

namespace xccl::device {

extern const HostKernel* const kKernels[];
extern const int kNumKernels;

}  // namespace xccl::device
