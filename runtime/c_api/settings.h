// The settings of a communicator. They come from calls, from a configuration, or from the communicator that
// it is made from.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "runtime/c_api/handles.h"
#include "runtime/xccl.h"

namespace xccl::c_api {

// The setting that errors name where a limit of GPUs is too low.
inline constexpr const char* kLimitCuda = "xcclCommLimitCuda";

// Errors of all: kUsage for values that cannot be; kInvalidInput after a book was loaded.
Status SetTimeLimit(Comm& of, double seconds);
Status UseCuda(Comm& on, int device);
Status LimitCuda(Comm& of, int max_ctas, size_t memory_bytes);

// A program's configuration, with the fields that its header has; the fields that its header lacks are unset.
// Null: all fields are unset. Errors: kUsage for a form that this library cannot read and for values that
// cannot be.
StatusOr<xcclConfig_t> ReadConfig(const xcclConfig_t* from);
// Applies the fields of the configuration that are set.
Status Apply(const xcclConfig_t& config, Comm& comm);
// Copies the settings of `from` to `to`. Requires: `to` has no handle yet.
void Inherit(Comm& from, Comm& to);

}  // namespace xccl::c_api
