// A program as MSCCL XML, instruction by instruction. Private to interchange/msccl/xml.h, which makes the
// program fit first.
#pragma once

#include <cstdint>
#include <limits>

#include "base/status.h"
#include "interchange/msccl/xml.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

// Arrays of the parsers and kernels (msccl.h of microsoft/msccl b23e9cd, msccl_struct.h of
// msccl-executor-nccl c6f6b36).
inline constexpr int32_t kMostPeersOfChannel =
    32;  // threadblocks of a rank that send, or receive, on one channel
inline constexpr int32_t kMostOffset = std::numeric_limits<int16_t>::max();

struct WrittenXml {
  MscclXml xml;
  int64_t most_of_a_chunk = 1;  // chunks of the file that the program's largest chunk is
};
// Requires: one instance. Errors: those of WriteMscclXml.
StatusOr<WrittenXml> WriteAsItIs(const Program& program, const Collective& collective,
                                 const MscclXmlOptions& options);

}  // namespace xccl
