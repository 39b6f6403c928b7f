// What types, operators and protocols are called in device/: what generated sources, and their compiler, are
// told.
#pragma once

#include <string_view>

#include "ir/numbers.h"
#include "ir/program.h"

namespace xccl {

std::string_view DeviceName(DataType type);      // "float", "Bfloat16"
std::string_view DeviceName(ReduceOp op);        // "kSum"
std::string_view DeviceName(Protocol protocol);  // "kLl"

}  // namespace xccl
