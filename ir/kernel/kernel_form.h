// A Program in the form that a kernel runs: the common input of the code generator and of the interpreter
// kernel's table. It is made from a Program that verifies and its Collective. Every rank has blocks:
// threadblocks, merged where they are never busy at once. Every instruction has its runs of chunks, the
// connections that it uses, the blocks that wait for it, and whether its messages are direct. Nothing
// depends on sizes; sizes enter through formulas over the parts' element counts (device/block.h;
// ir/kernel/kernel_sizes.h for the launcher).
//
// A *run* is a sequence of chunks of one part with equal weights that are adjacent in every operand, at the
// sender and at the receiver. A message is its runs, one after another.
//
// Direct messages need the peer's buffers to be mapped (docs/kernels.md proves the rules):
//   put  the sender stores where the receiver's instruction would have stored. Allowed if every other access
//        to these slots on the receiving rank certainly comes after that instruction.
//   get  the receiver reads what the sender's instruction read or stored. Allowed if every other write to
//        these slots on the sending rank certainly comes before that instruction.
// Only a rank's own threadblock order and dependencies count here; orders that messages make are not used.
//
// Messages of a switch's group are direct where the switch itself reaches the buffers, all members' and the
// root's at the same place:
//   switch get  the switch adds up what the members' instructions read, and what the root's reads.
//   switch put  the switch stores where all members' instructions, and the root's or a copy of it, store.
// Every member must satisfy the rules of get and put, with one exception: the order of the root's threadblock
// counts, too. The root takes a sum before it sends later data, so both may work on one buffer, in place.
// Messages of a fan-in are never direct, nor are other messages of an instruction that has a group.
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

enum class DirectMode : uint8_t { kNo, kPut, kPutOutOfPlace, kGet, kGetOutOfPlace, kSwitchPut, kSwitchGet };
inline bool BySwitch(DirectMode m) { return m == DirectMode::kSwitchPut || m == DirectMode::kSwitchGet; }
inline bool IsPut(DirectMode m) {
  return m == DirectMode::kPut || m == DirectMode::kPutOutOfPlace || m == DirectMode::kSwitchPut;
}
inline bool IsGet(DirectMode m) {
  return m == DirectMode::kGet || m == DirectMode::kGetOutOfPlace || m == DirectMode::kSwitchGet;
}

// The place of a run: in input and output the position of its part, in scratch the number of the scratch run.
struct KernelPlace {
  BufferKind buffer = BufferKind::kInput;
  int32_t position = 0;
  bool operator==(const KernelPlace&) const = default;
};

struct KernelRun {
  PartId part;
  int64_t total = 1;   // weight of the part
  int64_t before = 0;  // weight of its chunks before the run
  int64_t weight = 1;  // weight of each chunk
  int32_t count = 0;   // number of chunks
  KernelPlace src, dst;
  KernelPlace peer;      // if this instruction sends a put: its destination in the peer's buffers
  KernelPlace peer_src;  // if it receives by get: the source in the peer's buffers
};

struct KernelDependency {
  int32_t block = 0;  // threadblock of the same rank
  int32_t index = 0;  // within that block
};

struct KernelInstruction {
  Instruction what;
  int32_t threadblock = 0, index = 0;           // in the Program
  std::optional<int32_t> from, to;              // indices into KernelRank::connections
  std::optional<int32_t> from_group, to_group;  // or into KernelRank::groups
  DirectMode receive = DirectMode::kNo, send = DirectMode::kNo;
  bool received_first = false;  // a get reads input that avg has not yet scaled
  bool signals = false;         // another block waits for it
  std::vector<KernelDependency> after;
  std::vector<KernelRun> runs;
};

// The buffer that holds the data which an instruction sends.
inline BufferKind SentFrom(const KernelInstruction& i) {
  return i.what.op == Opcode::kSend ? i.what.src.buffer : i.what.dst.buffer;
}

struct KernelBlock {
  std::vector<KernelInstruction> instructions;
};

// A run of consecutive chunks in scratch. Runs follow one another; each starts at a multiple of 16 bytes
// (ScratchRunBegins).
struct ScratchRun {
  PartId part;
  int64_t total = 1, before = 0, weight = 0;  // as in KernelRun; weight is that of the whole run
};

struct KernelRank {
  // Connections with an end at this rank: indices in Program::connections, ascending.
  std::vector<int32_t> connections;
  // Groups whose root is this rank: indices in Program::groups, ascending.
  std::vector<int32_t> groups;
  std::vector<ScratchRun> scratch;
  std::vector<KernelBlock> blocks;
};

// `local`: as in KernelInstruction::from and to.
inline const Connection& ConnectionOf(const Program& program, const KernelRank& rank, int32_t local) {
  return program.connections[static_cast<size_t>(rank.connections[static_cast<size_t>(local)])];
}

struct KernelForm {
  IdVector<Rank, KernelRank> ranks;
  int32_t blocks_per_rank = 0;  // the largest number on one rank
  int32_t members = 1;          // n of avg
  bool tables = false;          // parts differ in size or in how they are cut, so begins come from tables
  bool direct = false;          // some message of two ranks has a direct mode
  bool switch_direct = false;   // some message of a switch's group has one
  bool messages_order = false;  // on some rank only messages order some accesses
  int64_t instructions = 0;
};

inline constexpr int32_t kMaxKernelEnds = 32;  // the most connections of one block
inline constexpr int64_t kMaxKernelInstructions = 1 << 22;

// Requires: the program verifies. Errors: kInvalidInput for a message that arrives as other chunks than were
// sent, for weights of 2^31 and more, and for more than kMaxKernelInstructions. Cost: O(instructions
// × threadblocks of their rank + accesses of a slot squared). If `merge` is false, every threadblock is a
// block of its own.
StatusOr<KernelForm> MakeKernelForm(const Program& program, const Collective& collective, bool merge = true);

// "0.4: recv_reduce_copy i[2..3] -> o[2..3], from rank 1, after 1.3". Numbers are threadblock.instruction
// as in the Program.
std::string Describe(const KernelInstruction& instruction, const Program& program, Rank rank,
                     const KernelForm& form);

}  // namespace xccl
