// The vocabulary of a kernel's instructions: opcodes, chunks, addresses, the ends of connections, and a
// kernel's configuration. docs/kernels.md.
#pragma once

#include "device/spin.h"

namespace xccl::device {

// In the same order as xccl::Opcode.
enum class Op : int32_t {
  kSend,
  kRecv,
  kRecvCopySend,
  kRecvReduceSend,
  kRecvReduceCopy,
  kRecvReduceCopySend,
  kCopy,
  kReduce,
  kNop
};
XCCL_DEVICE constexpr bool Receives(Op op) { return op >= Op::kRecv && op <= Op::kRecvReduceCopySend; }
XCCL_DEVICE constexpr bool Sends(Op op) {
  return op == Op::kSend || op == Op::kRecvCopySend || op == Op::kRecvReduceSend ||
         op == Op::kRecvReduceCopySend;
}
XCCL_DEVICE constexpr bool Reads(Op op) {
  return op == Op::kSend || (op >= Op::kRecvReduceSend && op <= Op::kReduce);
}
XCCL_DEVICE constexpr bool Writes(Op op) {
  return op != Op::kSend && op != Op::kRecvReduceSend && op != Op::kNop;
}

// In the same order as xccl::BufferKind and DirectMode.
enum class Buffer : int32_t { kInput, kOutput, kScratch };
enum class Direct : int32_t { kNo, kPut, kPutOutOfPlace, kGet, kGetOutOfPlace, kSwitchPut, kSwitchGet };
XCCL_DEVICE constexpr bool BySwitch(Direct mode) { return mode >= Direct::kSwitchPut; }

// Marks of an instruction. kFirst: src is unscaled input. kFinal: the result is the complete sum.
// kReceivedFirst: what was read from a peer is unscaled input.
inline constexpr uint32_t kFirst = 1, kFinal = 2, kReceivedFirst = 4;

// The elements of `of` ÷ kTotal of a part, rounded down. Requires: elements < 2^43 and weights < 2^31, so
// that nothing overflows.
template <uint32_t kTotal>
XCCL_DEVICE int64_t ShareOf(int64_t elements, int32_t of) {
  const uint64_t e = static_cast<uint64_t>(elements), quotient = e / kTotal, rest = e % kTotal;
  const uint32_t weight = static_cast<uint32_t>(of);
  if constexpr (kTotal < 65536)
    return static_cast<int64_t>(quotient * weight + static_cast<uint32_t>(rest) * weight / kTotal);
  return static_cast<int64_t>(quotient * weight + rest * weight / kTotal);
}

// A run of `count` chunks of a part, each with weight `weight`, after chunks with total weight `before`.
template <uint32_t kTotal>
struct Chunks {
  int32_t part, before, weight, count;
  XCCL_DEVICE int64_t Share(int64_t elements, int32_t of) const { return ShareOf<kTotal>(elements, of); }
};
struct AnyChunks {
  int32_t part, before, weight, count, total;
  XCCL_DEVICE int64_t Share(int64_t elements, int32_t of) const {
    const uint64_t e = static_cast<uint64_t>(elements), t = static_cast<uint64_t>(total),
                   w = static_cast<uint64_t>(of);
    return static_cast<int64_t>(e / t * w + e % t * w / t);
  }
};

// The addresses of a run's elements, given as the address that element 0 of the part would have. Null:
// unused. `put` and `get` are in a peer's memory, or what the switch of a group reaches.
struct Places {
  const char* src = nullptr;
  char* dst = nullptr;
  char* put = nullptr;
  const char* get = nullptr;
};

// One end of a connection while a kernel runs.
struct End {
  uint64_t step = 0;  // number of messages so far
  int32_t slot = 0;   // step mod slots
  int32_t index = 0;  // number among the block's ends
};
// State that every thread needs, but rarely, and that a block therefore keeps in shared memory: its ends,
// and the rank's buffers.
struct EndInfo {
  const Connection* connection;  // null for a group
  char* slots;
  uint64_t* head;
  uint64_t* tail;
  char* buffer[3];  // the peer's buffers that this rank can reach, or the switch of its group, or null
  uint32_t slot_bytes;
  uint32_t lent;  // bit b: the peer, or the switch of its group, reaches this rank's buffer b; kBySwitch
  int32_t peer_in_place;
  int32_t peer;
  int32_t place;                 // in RankArgs::connections
  Fifo* fifo;                    // null: the peer is of this host, or this is a group
  const GroupConnection* group;  // null for an ordinary connection
  // Copies of what the connection or the group holds, since nothing should be loaded after the last message.
  uint64_t* steps;
  const GroupMember* members;
  int32_t count;
};
struct RankInfo {
  const char* input;
  char* output;
  char* scratch;
  BlockState* states;  // the states of this instance's blocks
  Waiter waiter;
  const RankBuffers* buffers;
};

// A kernel's configuration.
template <class N, Protocol kProtocolOf, int32_t kSlotsOf, int32_t kEndsOf, bool kTablesOf,
          bool kMessagesOrderOf>
struct Config {
  using Numbers = N;
  static constexpr Protocol kProtocol = kProtocolOf;
  static constexpr bool kSimple = kProtocol == Protocol::kSimple;
  static constexpr int32_t kSlots = kSlotsOf;
  static constexpr int32_t kEnds = kEndsOf;                 // the most of one block, at least 1
  static constexpr bool kTables = kTablesOf;                // parts differ
  static constexpr bool kMessagesOrder = kMessagesOrderOf;  // only messages order some accesses
  // The protocols that there is code for; on the host the protocol is a run-time value.
  XCCL_DEVICE static constexpr bool Has(Protocol protocol) { return protocol == kProtocol; }
};

// The number of elements in a pass's slice: ir/program.h, SliceOf.
XCCL_DEVICE_CALL int64_t SliceElements(int64_t elements, int32_t passes, int64_t unit) {
  const uint64_t even = static_cast<uint64_t>(elements + passes - 1), divisor = static_cast<uint64_t>(passes);
  const uint64_t share =
      even >> 32 == 0 ? static_cast<uint32_t>(even) / static_cast<uint32_t>(divisor) : even / divisor;
  return (static_cast<int64_t>(share) + unit - 1) / unit * unit;
}

}  // namespace xccl::device
