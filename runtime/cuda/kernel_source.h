// Turns generated source into the image that a device runs. The text comes from codegen, through a file of
// the plan book or from the caller that starts the run. The headers of device/ that it includes are part of
// this binary.
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
#include "runtime/plan_book.h"

namespace xccl::cuda {

// All of device/, by the names under which they include each other. Sorted. The build makes it
// (embed_headers.sh).
const std::vector<SourceFile>& DeviceHeaders();

// The request that compiles a kernel for one type and operator.
CompileRequest KernelRequest(const std::string& name, const std::string& source, DataType type, ReduceOp op,
                             int32_t arch);

// The hash of the source and headers of a cubin made ahead of time; type, operator and architecture stand
// beside it.
uint64_t MadeFrom(const std::string& source);

// The cubin of the device's architecture, where `cubins` (files being paths) has one that was made from this
// source and these headers; else NVRTC, which is opened when the cache lacks an image, compiles. `cache` is
// shared by all programs of a process. Errors: those of NVRTC, with the cubin that was passed over.
KernelImages ImagesOfSource(std::string name, std::string source, std::shared_ptr<KernelCache> cache,
                            std::vector<PlanCubin> cubins = {});

// As ImagesOfSource, for the interpreter kernel that runs any program of `program`'s protocol; there is one
// for programs with groups and one for programs without.
KernelImages ImagesOfInterpreter(const Program& program, std::shared_ptr<KernelCache> cache);

}  // namespace xccl::cuda
