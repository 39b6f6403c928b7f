// Reductions on the CPU, as ir/numbers.h defines them, as fast as memory. The functions for a type and
// operator are looked up once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/numbers.h"

namespace xccl {

// dst[i] = local[i] op received[i]; dst may be local or received.
using ReduceFunction = void (*)(std::byte* dst, const std::byte* local, const std::byte* received,
                                int64_t elements);

// Never null. Safe from any thread.
ReduceFunction FindReduce(DataType type, ReduceOp op);

// dst[i] = scalar * src[i], rounded as a product is; dst may be src. `scalar`: one element.
void MultiplyBy(DataType type, const std::byte* scalar, std::byte* dst, const std::byte* src,
                int64_t elements);

// A group's received value: members[0][i] op members[1][i] op .., as ReduceMembersReference. dst overlaps
// none.
void ReduceMembers(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> members,
                   int64_t elements);

}  // namespace xccl
