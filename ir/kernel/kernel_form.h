// A Program as a kernel runs it: what a code generator and the interpreter kernel's table have in common. In:
// a Program that verifies, its Collective. Out: for every rank its blocks (threadblocks, those that are never
// busy at once merged), for every instruction its runs of chunks, the ends that it uses, what waits for it,
// and whether its message can go straight to or from a buffer of the peer. Nothing depends on sizes; what
// does is a formula of the element counts of the parts (device/block.h), and for the launcher
// ir/kernel/kernel_sizes.h.
//
// A *run* is a sequence of chunks of one part with equal weights that lie without gaps in every operand, on
// the sender's and on the receiver's side. A message is its runs one after another.
//
// Direct messages, the peer's buffers being mapped (docs/kernels.md proves the rules):
//   put  the sender stores where the receiver's instruction would have stored. Allowed where no other access
//   to these
//        slots on the receiving rank comes before, or may come before, that instruction.
//   get  the receiver reads what the sender's instruction read or stored. Allowed where nothing writes these
//   slots on
//        the sending rank after, or maybe after, that instruction.
// Messages of groups are never direct, nor others of an instruction that has one.
// "Before" is what a rank's own threadblock order and dependencies say; orders that only messages make are
// not used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

enum class DirectMode : uint8_t { kNo, kPut, kPutOutOfPlace, kGet, kGetOutOfPlace };
inline bool IsPut(DirectMode m) { return m == DirectMode::kPut || m == DirectMode::kPutOutOfPlace; }
inline bool IsGet(DirectMode m) { return m == DirectMode::kGet || m == DirectMode::kGetOutOfPlace; }

// Where a run lies: in input and output the position of its part, in scratch the number of the scratch run.
struct KernelPlace {
  BufferKind buffer = BufferKind::kInput;
  int32_t position = 0;
  bool operator==(const KernelPlace&) const = default;
};

struct KernelRun {
  PartId part;
  int64_t total = 1;   // weight of the part
  int64_t before = 0;  // weight of its chunks before the run
  int64_t weight = 1;  // of each chunk
  int32_t count = 0;   // chunks
  KernelPlace src, dst;
  KernelPlace peer;      // a put's destination, where this instruction sends; in the peer's buffers
  KernelPlace peer_src;  // a get's source, where it receives
};

struct KernelDependency {
  int32_t block = 0;  // of the rank
  int32_t index = 0;  // within that block
};

struct KernelInstruction {
  Instruction what;
  int32_t threadblock = 0, index = 0;           // in the Program
  std::optional<int32_t> from, to;              // ends: KernelRank::connections
  std::optional<int32_t> from_group, to_group;  // in their place: KernelRank::groups
  DirectMode receive = DirectMode::kNo, send = DirectMode::kNo;
  bool received_first = false;  // a get reads input that avg has not scaled
  bool signals = false;         // another block waits for it
  std::vector<KernelDependency> after;
  std::vector<KernelRun> runs;
};

// Where what an instruction sends lies on its rank.
inline BufferKind SentFrom(const KernelInstruction& i) {
  return i.what.op == Opcode::kSend ? i.what.src.buffer : i.what.dst.buffer;
}

struct KernelBlock {
  std::vector<KernelInstruction> instructions;
};

// A run of consecutive chunks in scratch. They lie one after another, each begun at a multiple of 16 bytes
// (ScratchRunBegin).
struct ScratchRun {
  PartId part;
  int64_t total = 1, before = 0, weight = 0;  // as in KernelRun, weight of the whole run
  int32_t first_slot = 0;
};

struct KernelRank {
  std::vector<int32_t> connections;  // indices in Program::connections of which the rank is an end, ascending
  std::vector<int32_t> groups;       // indices in Program::groups of which the rank is the root, ascending
  std::vector<ScratchRun> scratch;
  std::vector<KernelBlock> blocks;
};

// `local`: as in KernelInstruction::from and to.
inline const Connection& ConnectionOf(const Program& program, const KernelRank& rank, int32_t local) {
  return program.connections[static_cast<size_t>(rank.connections[static_cast<size_t>(local)])];
}

struct KernelForm {
  IdVector<Rank, KernelRank> ranks;
  int32_t blocks_per_rank = 0;  // most
  int32_t members = 1;          // n of avg
  bool tables = false;          // parts differ in elements or in how they are cut: begins come from tables
  bool direct = false;          // some message has a direct mode
  bool messages_order = false;  // some accesses of a rank are only ordered by messages
  int64_t instructions = 0;
};

inline constexpr int32_t kMaxKernelEnds = 32;  // of connections, in one block
inline constexpr int64_t kMaxKernelInstructions = 1 << 22;

// Requires: the program verifies. Errors: kInvalidInput for a message that arrives as other
// chunks than those sent, for weights of 2^31 and more, for more than kMaxKernelInstructions. Cost:
// O(instructions × threadblocks of their rank + accesses of a slot squared); above 2^24 clock entries on a
// rank nothing is direct there.
// `merge`: threadblocks that are never busy at once become one block; else every one is a block of its own.
StatusOr<KernelForm> MakeKernelForm(const Program& program, const Collective& collective, bool merge = true);

// "0.4: recv_reduce_copy i[2..3] -> o[2..3], from rank 1, after 1.3": threadblock.instruction as in the
// Program.
std::string Describe(const KernelInstruction& instruction, const Program& program, Rank rank,
                     const KernelForm& form);

}  // namespace xccl
