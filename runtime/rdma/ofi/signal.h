// The data that a write carries for the receiver's completion queue. Its low bits are the low bits of a
// counter; the other bits are the mark of the connection, which the receiver makes and tells the ranks of its
// group. A mark is the receiver's cell and random bits as far as the data goes: 32 bits on EFA, 64 on TCP.
// TCP's providers check no key of a write to nowhere, so the mark is what keeps a stranger from making
// counters move. The source of an arrival would prove less: TCP's providers take the sender's word for its
// port, or do not tell the source.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xccl::ofi {

constexpr int kCounterBits = 12;       // more than twice the slots of a connection
constexpr size_t kLeastDataBytes = 4;  // 2^20 cells, and no random bits

// cells: the number of the receiver's cells, one for each end of its connections. random: 64 bits; as many as
// find room are used.
uint64_t MarkOf(int32_t cell, int32_t cells, size_t data_bytes, uint64_t random);
uint64_t Encode(uint64_t mark, uint64_t counter);
// The cell in data that has arrived, perhaps from a stranger. It is below the next power of two of `cells`.
int32_t CellOf(uint64_t data, int32_t cells);
bool HasMark(uint64_t data, uint64_t mark);
// The counter near `known` with these low bits: at most half of their range away from it.
uint64_t Unwrap(uint64_t data, uint64_t known);

// The low bytes of a number; all of it from eight on.
uint64_t LowBytes(uint64_t number, size_t bytes);

}  // namespace xccl::ofi
