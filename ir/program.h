// The physical plan: for every rank its threadblocks, and for every threadblock a list of instructions. A
// threadblock has at most one send peer and one receive peer, on one channel (MSCCL's execution model).
// docs/ir.md has the JSON and an example.
//
// Execution. A program runs its instruction lists once for every segment k = 0..K-1: each chunk is cut into
// K slices (SliceOf), and pass k touches the k-th slice of every chunk. Within a pass a threadblock runs
// its instructions in order; an instruction waits for its dependencies in the same pass. The connection
// (src, dst, channel) is a FIFO of `slots` slots; a sending instruction takes one slot, and the k-th send
// feeds the k-th receive. Passes touch different elements, so they may run in parallel: `instances` is the
// number of useful copies of every threadblock and connection, and copy i runs the passes k with k mod
// instances = i. An executor may have fewer copies; the result is the same.
//
// Memory. Every rank has three buffers addressed in slots of one chunk each. Slot i of input and output is
// the i-th chunk of Collective::InputParts/OutputParts in order; scratch slot i is as large as chunk
// scratch[i]. Slots of consecutive chunks of one part are adjacent, without gaps.
//
// Groups. A switch that multicasts or reduces serves several connections with one message. A threadblock
// has a group in place of a peer: it sends to all members, or receives the reduction of what they send.
// An executor without that switch sends to and receives from the members one at a time; the result is the
// same. A fan-in needs no switch: its threadblock receives from all members over connections of their own,
// and adds up their messages and its own value in one order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/sizes.h"

namespace xccl {

enum class BufferKind : uint8_t { kInput, kOutput, kScratch };
std::string_view ToString(BufferKind buffer);

enum class Opcode : uint8_t {
  kSend,                // send src
  kRecv,                // receive into dst
  kRecvCopySend,        // receive into dst and send it on
  kRecvReduceSend,      // send (src op received); store nothing
  kRecvReduceCopy,      // dst = src op received
  kRecvReduceCopySend,  // dst = src op received, and send it
  kCopy,                // dst = src
  kReduce,              // dst = dst op src
  kNop,                 // only waits for its dependencies
};
std::string_view ToString(Opcode op);  // "recv_reduce_copy_send"
bool Sends(Opcode op);
bool Receives(Opcode op);
bool ReadsSource(Opcode op);        // reads the src operand
bool WritesDestination(Opcode op);  // writes the dst operand

struct Operand {
  BufferKind buffer = BufferKind::kInput;
  int32_t slot = 0;
  bool operator==(const Operand&) const = default;
};

// Waits until instruction `index` of threadblock `threadblock` of the same rank is done in the same pass.
struct Dependency {
  int32_t threadblock = 0;  // index within the rank
  int32_t index = 0;        // index within that threadblock
  bool operator==(const Dependency&) const = default;
};

struct Instruction {
  Opcode op = Opcode::kNop;
  int32_t count = 0;  // chunks, in consecutive slots from each operand on
  Operand src;        // meaning by opcode; {input, 0} where unused
  Operand dst;
  bool first = false;     // src is the rank's own unscaled input; avg scales it when it is read
  bool final = false;     // the complete sum is written to dst or sent; avg of integers divides it
  int32_t dep_first = 0;  // dependencies: Program::dependencies[dep_first .. dep_first + dep_count)
  int32_t dep_count = 0;
  bool operator==(const Instruction&) const = default;
};

// Connections that one threadblock of the root serves together.
// - Multicast: the root sends, and every message reaches all members.
// - Reduce: the members send, and the root receives the reduction of their k-th messages, in ascending order
//   of rank.
// - Fan-in: the members send, and the root adds up their k-th messages in the order of `members`. If the
//   instruction has a src operand, the operand comes after the messages of the first `own` members.
// Types narrower than float are added in float and rounded once (ReduceMembersReference in numbers.h),
// whether a switch or a fan-in adds them. Multicast and reduce need a switch.
struct Group {
  enum class Kind : uint8_t { kMulticast, kReduce, kFanIn };
  Kind kind = Kind::kMulticast;
  Rank root;
  std::vector<Rank> members;  // without the root, at least two, each once; ascending but in a fan-in
  int32_t channel = 0;
  // A tree out of the root, or into it; each link carries a message once. Empty in a fan-in, whose members'
  // messages take the paths of their connections.
  std::vector<LinkId> path;
  int32_t own = 0;  // fan-in: number of members before the root's own operand, 0..members.size()
  bool operator==(const Group&) const = default;
};
// Returns whether switches move the group's messages.
inline bool HasSwitch(const Group& group) { return group.kind != Group::Kind::kFanIn; }
std::string_view ToString(Group::Kind kind);
std::optional<Group::Kind> ParseGroupKind(std::string_view name);

// The threadblocks of a group's members are ordinary ones; their peer is the root.
struct Threadblock {
  std::optional<Rank> send_peer;
  std::optional<Rank> recv_peer;
  std::optional<int32_t>
      send_group;  // index in Program::groups of a multicast of this rank; then no send_peer
  std::optional<int32_t>
      recv_group;       // index in Program::groups of a reduction or fan-in at this rank; then no recv_peer
  int32_t channel = 0;  // channel of both directions
  std::vector<Instruction> instructions;
  bool operator==(const Threadblock&) const = default;
};

// A FIFO from one rank to another. Its path consists of links of the topology that the program was lowered
// for. The k-th send of a group is the k-th message of each of its connections; its k-th receive takes the
// k-th message of each.
struct Connection {
  Rank src, dst;
  int32_t channel = 0;
  std::vector<LinkId> path;  // a chain; in a group, a branch of the group's path
  bool operator==(const Connection&) const = default;
};
std::string ToString(const Connection& connection);  // "connection 0->1 channel 0"

struct RankProgram {
  std::vector<ChunkId> scratch;  // by scratch slot: the chunk whose size it has
  std::vector<Threadblock> threadblocks;
  bool operator==(const RankProgram&) const = default;
};

enum class Protocol : uint8_t { kSimple, kLl, kLl128 };
inline constexpr size_t kNumProtocols = 3;
std::string_view ToString(Protocol protocol);
std::optional<Protocol> ParseProtocol(std::string_view name);

inline constexpr int32_t kMaxSlots = 1024;
inline constexpr int32_t kMaxInstances = 64;

struct Program {
  IdVector<Rank, RankProgram> ranks;    // every rank of the topology; idle ones have no threadblocks
  std::vector<Connection> connections;  // sorted by (src, dst, channel), each once
  // Sorted by (kind, root, channel), each once; a connection is in at most one group.
  std::vector<Group> groups;
  std::vector<Dependency> dependencies;  // dependencies of all instructions
  bool in_place = false;  // also correct if input and output share memory (Collective::InPlaceOf)
  int32_t slots = 2;      // slots of every connection, 1..kMaxSlots
  int32_t instances = 1;  // copies of every threadblock that share the passes, 1..kMaxInstances
  Protocol protocol = Protocol::kSimple;
  int64_t segment_bytes = 0;  // passes by NumPasses; 0: one pass
  bool operator==(const Program&) const = default;
};

// The default for the most threadblocks of a rank on a GPU, all instances together; one instance may have
// more. NCCL takes 16 to 32 of an H100's 132 multiprocessors; the rest are the application's.
inline constexpr int32_t kDefaultBlocks = 32;

// A program, and the collective whose chunks its slots hold. Each chunk of the program is one chunk of the
// schedule that it was lowered from, or several neighbouring chunks.
struct LoweredProgram {
  Collective collective;
  Program program;
  bool operator==(const LoweredProgram&) const = default;
};

// Totals that `plan` prints.
struct ProgramStats {
  int32_t threadblocks = 0;  // the most on one rank, over all instances
  int32_t channels = 0;      // over all instances
  int64_t instructions = 0;
  int64_t scratch_bytes = 0;  // the most on one rank, at the given sizes
};
ProgramStats Stats(const Program& program, const CollectiveSizes& sizes);

// The number of passes at these sizes, and the elements [begin, end) of a chunk (relative to its start)
// that pass k touches. Slices start at multiples of 16 bytes. A slice of a short chunk may be empty; a slice
// of the largest chunk never is. There are at most kMaxPasses passes; if that is too few, segments become
// larger than segment_bytes.
inline constexpr int32_t kMaxPasses = 1 << 20;
int32_t NumPasses(const Program& program, const CollectiveSizes& sizes);
struct Slice {
  int64_t begin = 0, end = 0;
};
Slice SliceOf(int64_t chunk_elements, int64_t element_bytes, int32_t passes, int32_t pass);

// The layout of a buffer, without gaps: the chunk in every slot and its first element. In scratch, every
// run of consecutive chunks starts at a multiple of 16 bytes.
struct BufferLayout {
  std::vector<ChunkId> chunk;
  std::vector<int64_t> begin;  // element offset of each slot
  int64_t elements = 0;        // size of the whole buffer
};
BufferLayout LayoutOf(const Program& program, const Collective& collective, const CollectiveSizes& sizes,
                      Rank rank, BufferKind buffer);
// The chunk in every slot of a buffer. Needs no sizes.
std::vector<ChunkId> SlotChunks(const Program& program, const Collective& collective, Rank rank,
                                BufferKind buffer);
// In place, slot i of a rank's input is slot i + shift of its output, where both exist (shift may be
// negative). Absent if the kind has no in-place form for this rank.
std::optional<int32_t> InPlaceShift(const Collective& collective, Rank rank);
// Index in Program::connections, which must be sorted. Logarithmic.
std::optional<int32_t> FindConnection(const Program& program, Rank src, Rank dst, int32_t channel);
// The connection between a group's root and a member, without its path: from the root in a multicast, else
// into it.
Connection BranchOf(const Group& group, Rank member);
// Returns the index of BranchOf(group, member) in Program::connections. Requires: the program has it.
size_t FindBranch(const Program& program, const Group& group, Rank member);
// The ranks that a threadblock sends to or receives from: its peer, the members of its group, or none. The
// spans point into the program.
std::span<const Rank> SendPeers(const Program& program, const Threadblock& block);
std::span<const Rank> RecvPeers(const Program& program, const Threadblock& block);
// The fan-in that a threadblock receives from; null: none.
const Group* FanInOf(const Program& program, const Threadblock& block);

}  // namespace xccl
