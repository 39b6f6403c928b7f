// The toolkit's compiler, for cubins ahead of time: the same requests as NVRTC's, in a process of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runtime/cuda/nvrtc.h"

namespace xccl::cuda {

// Looks in $CUDA_HOME/bin, $CUDA_PATH/bin, the directories of $PATH and /usr/local/cuda/bin, in this order.
// Errors: kInvalidInput "nvcc: not in ...; hint: --nvcc FILE".
StatusOr<std::string> FindNvcc(
    const std::function<std::optional<std::string>(std::string_view name)>& environment);

// Writes the sources into a new directory under `temporary`, compiles, reads the cubin, removes everything.
// Errors: kInvalidInput "NAME: nvcc for sm_90: exit status 1" followed by what it printed; "NVCC: cannot run:
// REASON".
StatusOr<std::string> CompileWithNvcc(const std::string& nvcc, const CompileRequest& request,
                                      const std::string& temporary = "/tmp");

}  // namespace xccl::cuda
