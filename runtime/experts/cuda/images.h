// Compiles the kernels of expert dispatch. The headers of device/ and of this folder are part of the binary.
#pragma once

#include <memory>
#include <vector>

#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/experts/cuda/gpu_experts.h"

namespace xccl::cuda {

// The headers of this folder that kernels include, by the names under which they do. The build makes it
// (runtime/cuda/embed_headers.sh).
const std::vector<SourceFile>& ExpertHeaders();

}  // namespace xccl::cuda

namespace xccl::dispatch {

// The request that compiles the kernel for combine's rows of a type.
cuda::CompileRequest ExpertKernelRequest(DataType type, int32_t arch);

// Compiles with NVRTC what the cache lacks.
ExpertImages ImagesOfExperts(std::shared_ptr<cuda::KernelCache> cache);

}  // namespace xccl::dispatch
