// Reductions on the CPU, as ir/numbers.h defines them, as fast as memory. The functions for a type and
// operator are looked up once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/numbers.h"

namespace xccl {

// dst[i] = local[i] op received[i]; dst may be local or received.
using ReduceFunction = void (*)(std::byte* dst, const std::byte* local, const std::byte* received,
                                int64_t elements);

// Never null. Safe from any thread.
ReduceFunction FindReduce(DataType type, ReduceOp op);

}  // namespace xccl
