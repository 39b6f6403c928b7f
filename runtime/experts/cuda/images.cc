#include "runtime/experts/cuda/images.h"

#include <utility>

#include "runtime/cuda/kernel_source.h"

namespace xccl::dispatch {

cuda::CompileRequest ExpertKernelRequest(DataType type, int32_t arch) {
  cuda::CompileRequest request = cuda::KernelRequest(
      "expert dispatch", "#include \"runtime/experts/cuda/kernel.h\"\n", type, ReduceOp::kSum, arch);
  const std::vector<cuda::SourceFile>& own = cuda::ExpertHeaders();
  request.headers.insert(request.headers.end(), own.begin(), own.end());
  return request;
}

ExpertImages ImagesOfExperts(std::shared_ptr<cuda::KernelCache> cache) {
  return [cache = std::move(cache)](DataType type, int32_t arch) -> StatusOr<std::string> {
    XCCL_ASSIGN_OR_RETURN(const cuda::Nvrtc* nvrtc, cuda::LoadNvrtc());
    return cache->Get(*nvrtc, ExpertKernelRequest(type, arch));
  };
}

}  // namespace xccl::dispatch
