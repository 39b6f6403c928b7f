// The one header of the kernel of expert dispatch and combine. XCCL_TYPE is the type of combine's rows:
// float, Half or Bfloat16.
#pragma once

#include "runtime/experts/cuda/combine_block.h"
#include "runtime/experts/cuda/dispatch_block.h"

namespace xccl::device {

template <class T>
XCCL_DEVICE void RunExpertBlock(const ExpertArgs& args, int32_t block) {
  if (args.call == ExpertCall::kDispatch)
    DispatchBlock(args, block).Run();
  else
    CombineBlock<T>(args, block).Run();
}

#ifdef __CUDACC__
extern "C" __constant__ const KernelInfo xccl_kernel_info = {.threads = kExpertThreads,
                                                             .type = kTypeOf<XCCL_TYPE>};

// Two blocks fit a multiprocessor at least, so that one's waits are the other's time.
extern "C" __global__ void __launch_bounds__(kExpertThreads, 2)
    xccl_kernel(const __grid_constant__ ExpertArgs args) {
  RunExpertBlock<XCCL_TYPE>(args, BlockIndex());
}
#endif

}  // namespace xccl::device
