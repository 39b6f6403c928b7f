// The memory layout of kernels: plain structs shared by the host compiler, nvcc and NVRTC (which has no
// standard headers). A kernel takes a LaunchArgs by value and reaches everything else from it. Generated
// kernels and the interpreter kernel (device/interpret.h) have the same ABI.
//
// Grid: blocks = ranks_here × blocks per rank (KernelInfo) × instances. For block b,
//   rank = first_rank + b / (blocks_per_rank × instances), then threadblock copy c = b mod that product,
//   instance = c / blocks_per_rank, block of the rank = c mod blocks_per_rank.
// In production a launch has one rank; ranks that share a device are in one cooperative launch.
//
// Counters only grow (modulo 2^64), are in device memory, start at zero and are never launch arguments.
// Each end loads its own count when a launch starts and stores it when the launch ends, so replaying a CUDA
// graph needs no work by the host. Connections and BlockStates belong to one (program, instances, slots,
// slot_bytes, protocol); two programs do not share them. All ranks launch a program equally often.
//
// Connection (source, destination, channel, instance): a FIFO of KernelInfo::slots slots in the RECEIVER's
// memory. `head`, beside them, counts messages put and is polled by the receiver. `tail`, in the SENDER's
// memory, counts messages taken (credits) and is polled by the sender. Each counter has a 128-byte line of
// its own. Message m is in slot m mod slots. LL and LL128 carry flags in the data and do not use head:
//   LL     8-byte words {data u32, flag u32}, flag = low 32 bits of m + 1. Once in every 2^31 messages each
//          slot is rewritten as a whole. So no flag in a slot is older than that, and a flag of 2^32 messages
//          ago cannot match.
//   LL128  128-byte lines of 15 data words and one 64-bit flag m + 1, which never repeats.
// Slots must be zero at first.
//
// A connection between hosts has slots at both ends: the sender writes its own, and the rank's proxy, a
// thread of the host, has a network copy each message into the receiver's. The kernel tells the proxy of
// messages put and taken through a Fifo, where it would have stored head and tail in the peer's memory. The
// head and the tail that it polls are words of the host, which the proxy writes. Such connections use
// protocol simple and carry no direct messages; docs/kernels.md, section 6.
//
// GroupConnection (group, instance): the root's side of the connections between the root of a group and its
// members. Members have ordinary Connections. The slots of a reduce group are in the SENDERS' memory, where a
// switch reads all of them at once; those of a multicast group and of a fan-in are in the receivers' memory,
// as usual. If a switch serves the group, `multicast` is the address at which it reaches the slots of all
// members and of the root. Where all ranks have registered their buffers the switch may reach the buffers,
// too, and then no slot is used; docs/kernels.md, section 5.
#pragma once

#ifndef __CUDACC_RTC__
#include <cstddef>
#include <cstdint>
#endif

namespace xccl::device {

#ifdef __CUDACC_RTC__
using int8_t = signed char;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#endif

inline constexpr int32_t kAbiVersion = 7;
inline constexpr int32_t kLineBytes = 128;  // counters and slots are aligned to this

// The values of xccl::DataType, ReduceOp and Protocol in ir/, which runtime/device_values.h asserts.
enum class Type : int32_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kHalf,
  kFloat,
  kDouble,
  kBfloat16,
  kFp8E4m3,
  kFp8E5m2
};
enum class Operator : int32_t { kSum, kProd, kMin, kMax, kAvg };
enum class Protocol : int32_t { kSimple, kLl, kLl128 };

// A line of a protocol that sends flags among data, and the bytes of it that are data (device/ll.h).
inline constexpr int kLlData = 8, kLlLine = 16;
inline constexpr int kLl128Data = 120, kLl128Line = 128;

#ifndef __CUDACC_RTC__
// The data bytes that a slot holds.
constexpr int64_t PayloadBytes(Protocol protocol, int64_t slot_bytes) {
  return protocol == Protocol::kSimple ? slot_bytes
         : protocol == Protocol::kLl   ? slot_bytes / kLlLine * kLlData
                                       : slot_bytes / kLl128Line * kLl128Data;
}
#endif

// Why a threadblock gave up. Only the first threadblock that gives up writes it, to memory that the host
// can read while the kernel runs.
enum class Wait : int32_t { kNone, kDependency, kMessage, kCredit, kEntry, kDrain, kAborted };
struct ErrorRecord {
  uint32_t state = 0;  // 0: nothing; 2: complete, the fields may be read
  int32_t rank = 0;
  int32_t threadblock = 0;  // the Program's threadblock
  int32_t instruction = 0;  // index within the threadblock; -1 before the first and after the last
  int32_t instance = 0;
  int32_t pass = 0;
  Wait wait = Wait::kNone;
  // kMessage, kCredit, kEntry, kDrain: the other rank; kDependency: the block of this rank waited for.
  int32_t peer = 0;
  uint64_t expected = 0;  // the counter's awaited value, and the last one seen
  uint64_t seen = 0;
  uint64_t reserved[2] = {};
};
static_assert(sizeof(ErrorRecord) == 64);

// The addresses of a peer's buffers in the reader's address space, written by that peer when it enters a
// launch. Zero: not mapped. `epoch` is stored last, with release.
struct PeerEntry {
  uint64_t epoch = 0;
  uint64_t input = 0, output = 0, scratch = 0;
  uint64_t in_place = 0;  // RankBuffers::in_place
  uint64_t agreed = 0;    // bit b: the writer uses the reader's buffer b as it was told; kBySwitch
  uint64_t reserved[10] = {};
};
static_assert(sizeof(PeerEntry) == 128);

// In PeerEntry::agreed: the writer is the root of a switch's group.
inline constexpr uint64_t kBySwitch = 8;

// The delta of a window that a peer cannot reach.
inline constexpr uint64_t kUnmapped = ~uint64_t{0};
inline constexpr int32_t kNoWindow = -1;  // the window of a buffer that peers cannot reach
inline constexpr int32_t kWindows = 32;   // 0: one address space; the others: registered buffers

// One end of a connection, as its rank sees it.
struct Connection {
  char* slots = nullptr;                  // the receiver's memory; slots × slot_bytes
  uint64_t* head = nullptr;               // the receiver's memory
  uint64_t* tail = nullptr;               // the sender's memory
  uint64_t* steps = nullptr;              // this end's messages in earlier launches; this rank's memory
  const PeerEntry* entry_here = nullptr;  // the peer's record of its buffers; this rank's memory
  // This rank's record of its buffers, in the peer's memory. Null where the peer is of another host, which is
  // reached through the Fifo.
  PeerEntry* entry_there = nullptr;
  // By window of this rank: the difference between the peer's address and this rank's address of the same
  // byte, or kUnmapped. By convention window 0 is "one address space": delta 0, or kUnmapped. Between a
  // member of a switch's group and its root: the first row of GroupConnection::switch_delta.
  const uint64_t* window_delta = nullptr;
  int64_t slot_bytes = 0;  // a multiple of kLineBytes
};
static_assert(sizeof(Connection) == 64);
#ifndef __CUDACC_RTC__
static_assert(offsetof(Connection, steps) == 24 && offsetof(Connection, slot_bytes) == 56);
#endif

// One member of a group, as the root sees it.
struct GroupMember {
  char* slots = nullptr;     // slots × slot_bytes
  uint64_t* head = nullptr;  // where the receiver polls
  uint64_t* tail = nullptr;  // where the sender polls
  int32_t rank = 0;
  int32_t place = -1;                     // a member of another host: its index in RankArgs::connections
  const PeerEntry* entry_here = nullptr;  // as Connection's
  PeerEntry* entry_there = nullptr;
};
static_assert(sizeof(GroupMember) == 48);

struct GroupConnection {
  const GroupMember* members = nullptr;  // [count], ascending; a fan-in's: in the order of its sum
  uint64_t* steps = nullptr;             // messages in earlier launches; this rank's memory
  // The slots of all members and of the root at once; null: no switch serves the group.
  char* multicast = nullptr;
  char* own = nullptr;        // reduce: the root's own slots, which must hold a neutral element
  uint64_t* holds = nullptr;  // reduce: that element's bits, eight bytes of them; this rank's memory
  int64_t slot_bytes = 0;     // a multiple of kLineBytes
  int32_t count = 0;
  int32_t own_place = -1;  // fan-in: how many members come before the rank's own value
  // Two rows, by window of this rank. Added to an address, the first gives a number that is the same on all
  // ranks for the same byte of what they registered together; the second turns that into the address at which
  // the switch reaches the byte on all ranks. kUnmapped: it does not. Null: it reaches no windows.
  const uint64_t* switch_delta = nullptr;
};
static_assert(sizeof(GroupConnection) == 64);

// The state of one threadblock copy, on one line. Other blocks of the rank wait for `progress`: epoch ×
// 2^32 + number of instructions done in this launch.
struct BlockState {
  uint64_t progress = 0;
  uint64_t epoch = 0;  // number of finished launches
  uint64_t reserved[14] = {};
};
static_assert(sizeof(BlockState) == 128);

// An entry that a kernel leaves for the proxy. `turn` is stored last, with release. It is 1 + the entry's
// number since the start, which tells the entry from earlier ones in the same place.
struct FifoEntry {
  uint64_t what = 0;  // a FifoWord, encoded
  uint64_t turn = 0;
};
static_assert(sizeof(FifoEntry) == 16);

// A message of `bytes` bytes was put on connection `index` of RankArgs::connections, or one was taken.
struct FifoWord {
  int32_t index = 0;
  bool taken = false;
  uint32_t bytes = 0;
};
#ifndef __CUDACC_RTC__
constexpr FifoWord DecodeFifoWord(uint64_t word) {
  return {static_cast<int32_t>(word >> 1 & 0x7fffffff), (word & 1) != 0, static_cast<uint32_t>(word >> 32)};
}
#endif

// The entries lie in memory of the host. There are at least as many as all connections between hosts have
// slots, so none is written before it was read: no connection has more messages put, or taken, that its proxy
// has not seen.
struct Fifo {
  FifoEntry* entries = nullptr;
  uint64_t mask = 0;    // number of entries - 1; that number is a power of two
  uint64_t pushed = 0;  // entries given out, modulo 2^64
  uint64_t reserved[13] = {};
};
static_assert(sizeof(Fifo) == 128);

// Arguments that stay the same from launch to launch, one per rank.
struct RankArgs {
  // [k × instances + instance], where k counts the Program's connections with an end at this rank, in their
  // order.
  const Connection* connections = nullptr;
  BlockState* blocks = nullptr;  // [instance × blocks_per_rank + block]
  // [k × instances + instance], k counting the Program's groups that this rank is the root of, in their
  // order.
  const GroupConnection* groups = nullptr;
  Fifo* fifo = nullptr;  // this rank's memory; null: all peers are of this host
};
static_assert(sizeof(RankArgs) == 32);

// The buffers of one rank in one call, aligned to their element size. The tables `..._begin` are given only
// for programs whose parts differ (KernelInfo::tables). They are in elements and for this rank: where the
// parts of its input and of its output begin, by position, and where its scratch runs begin. Scratch belongs
// to the call, too: where it is too small, larger memory takes its place while kernels still use the old.
struct RankBuffers {
  const char* input = nullptr;
  char* output = nullptr;
  char* scratch = nullptr;  // aligned to kLineBytes
  const int64_t* input_begin = nullptr;
  const int64_t* output_begin = nullptr;
  const int64_t* scratch_begin = nullptr;
  int32_t input_window = kNoWindow;
  int32_t output_window = kNoWindow;
  int32_t scratch_window = kNoWindow;
  int32_t in_place = 0;  // input and output overlap as the collective defines; may differ by rank
};
static_assert(sizeof(RankBuffers) == 64);

// In LaunchArgs::direct: peers' buffers may be used if both sides mapped them; the switch may use the
// buffers of all ranks of a group if all registered them.
inline constexpr int32_t kDirectPeers = 1, kDirectSwitch = 2;

// The kernel's one parameter.
struct LaunchArgs {
  const RankArgs* ranks = nullptr;         // [ranks_here]
  const RankBuffers* buffers = nullptr;    // [ranks_here]; null: `own` serves the one rank
  const int64_t* part_elements = nullptr;  // [parts]; only with KernelInfo::tables
  ErrorRecord* error = nullptr;            // memory that the host can read, or null
  uint32_t* stop = nullptr;                // device memory, zero; set by the first threadblock that gives up
  const uint32_t* abort = nullptr;         // memory that the host writes, or null; nonzero ends the launch
  const int32_t* table = nullptr;          // interpreter kernel only: the program (device/interpret.h)
  RankBuffers own;
  int64_t elements = 0;       // elements of every part, without KernelInfo::tables
  int64_t spin_limit_ns = 0;  // limit on a wait without progress; 0: none
  uint64_t jitter = 0;        // if not 0, the seed of random delays before instructions
  int32_t first_rank = 0, ranks_here = 1;
  int32_t passes = 1;     // equal on all ranks; with so many every message fits a slot
  int32_t instances = 1;  // copies of every threadblock, at most KernelInfo::instances
  int32_t direct = 0;     // kDirectPeers, kDirectSwitch; equal on all ranks
};
static_assert(sizeof(LaunchArgs) == 168);
#ifndef __CUDACC_RTC__
static_assert(offsetof(LaunchArgs, own) == 56 && offsetof(LaunchArgs, first_rank) == 144);
#endif

// A compiled kernel's description of itself: the symbol xccl_kernel_info in a module (constant memory) and
// in host builds. The kernel itself is xccl_kernel.
struct KernelInfo {
  int32_t abi_version = kAbiVersion;
  int32_t ranks = 0;
  int32_t blocks_per_rank = 0;  // threadblocks of one instance
  int32_t threads = 0;          // per block
  int32_t slots = 0;
  int32_t instances = 0;  // the most instances
  int32_t tables = 0;     // parts differ, so part tables are needed
  int32_t direct = 0;     // some message can be direct
  Protocol protocol = Protocol::kSimple;
  Type type = Type::kFloat;
  Operator op = Operator::kSum;
  int32_t reserved[5] = {};
};
static_assert(sizeof(KernelInfo) == 64);

}  // namespace xccl::device
