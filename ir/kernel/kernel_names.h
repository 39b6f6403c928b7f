// The names of types, operators and protocols in device/, for generated sources and their compiler.
#pragma once

#include <string_view>

#include "ir/numbers.h"
#include "ir/program.h"

namespace xccl {

std::string_view DeviceName(DataType type);      // "float", "Bfloat16"
std::string_view DeviceName(ReduceOp op);        // "kSum"
std::string_view DeviceName(Protocol protocol);  // "kLl"

}  // namespace xccl
