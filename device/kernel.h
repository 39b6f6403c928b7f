// The one header that generated CUDA source includes.
#pragma once

#include "device/block.h"

namespace xccl::device {

// The default number of threads per block. Simple has many, so that enough loads are in flight for
// bandwidth. LL and LL128 are for latency; with few threads barriers are cheap and each thread has many
// registers.
template <Protocol kProtocol>
inline constexpr int32_t kDefaultThreads = kProtocol == Protocol::kSimple ? 512 : 256;
// The default number of threads per block for programs with groups. Their code needs up to 141 registers
// under simple: 512 threads would leave 128 and spill.
template <Protocol kProtocol>
inline constexpr int32_t kGroupThreads = kProtocol == Protocol::kSimple ? 384 : 256;

}  // namespace xccl::device
