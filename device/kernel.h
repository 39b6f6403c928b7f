// What generated CUDA source includes.
#pragma once

#include "device/block.h"

namespace xccl::device {

// Threads of a block: enough loads under way for bandwidth; few, and so cheap barriers and many registers
// each, where latency counts.
template <Protocol kProtocol>
inline constexpr int32_t kDefaultThreads = kProtocol == Protocol::kSimple ? 512 : 256;

}  // namespace xccl::device
