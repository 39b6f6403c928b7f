// From generated source to the image that a device runs. The text comes from codegen, through a file of the
// plan book or from whoever starts the run; the headers of device/ that it includes are part of this binary.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "runtime/cuda/device_program.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/nvrtc.h"

namespace xccl::cuda {

// All of device/, by the names under which they include each other. Sorted.
const std::vector<SourceFile>& DeviceHeaders();

// How a kernel is compiled for one type and operator.
CompileRequest KernelRequest(const std::string& name, const std::string& source, DataType type, ReduceOp op,
                             int32_t arch);

// Compiles with NVRTC, which is opened when the cache lacks an image. `cache` is shared by all programs of a
// process.
KernelImages ImagesOfSource(std::string name, std::string source, std::shared_ptr<KernelCache> cache);

// The same of the interpreter kernel, which runs any program of this protocol.
KernelImages ImagesOfInterpreter(Protocol protocol, std::shared_ptr<KernelCache> cache);

}  // namespace xccl::cuda
