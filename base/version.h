// The version of the product, the same in every program and process of a run.
#pragma once

namespace xccl {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace xccl
