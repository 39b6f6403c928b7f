#pragma once

namespace xccl::nccl_shim {

// Under this name the library that LD_AUDIT names leads to NCCL's own; without it there is none of the name.
inline constexpr char kRealLibrary[] = "libnccl-of-nvidia.so.2";

}  // namespace xccl::nccl_shim
