// The elements of an MSCCL++ execution plan, as its executor's loader names them, with the limits of the
// executor. Written against microsoft/mscclpp (facts about 1f5f065 in docs/msccl.md).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/program.h"

namespace xccl::mscclpp {

// execution_common.hpp, execution_kernel.hpp and executor.cc of microsoft/mscclpp.
inline constexpr int32_t kMostOps = 64;          // ops of a threadblock; a pipeline and the ops in it count
inline constexpr int32_t kMostChannels = 16;     // channels of one type in a threadblock; also remote buffers
inline constexpr int32_t kMostChannelsOfOp = 8;  // also remote buffers of an op
inline constexpr int32_t kMostBuffersOfOp = 10;  // on each side: 2 local and 8 remote ones
inline constexpr int32_t kMostSemaphoresOfOp = 16;
inline constexpr int32_t kMostBarriers = 16;
// Chunks of a buffer. The executor takes more, but selects a plan for multiples of their number alone.
inline constexpr int32_t kMostChunks = 1 << 16;
inline constexpr int64_t kMostBytes = int64_t{1} << 32;  // offsets are 32 bits
inline constexpr int64_t kAlignment = 16;
// One block of 1024 threads, and no more than 64 registers a thread, fits a multiprocessor; blocks that wait
// for each other must all be resident. 80 multiprocessors are a V100's, the smallest GPU of the library.
inline constexpr int32_t kMultiprocessors = 80;
inline constexpr int32_t kMostBlocks = 4 * kMultiprocessors;  // with 256 threads each

enum class OpName : uint8_t {
  kNop,
  kBarrier,
  kPut,
  kPws,
  kPwsf,
  kGet,
  kCopy,
  kSignal,
  kWait,
  kRlxSignal,
  kRlxWait,
  kFlush,
  kRe,
  kRes,
  kRre,
  kRres,
  kPpkt,
  kRppkt,
  kRespkt,
  kCpkt,
  kUpkt,
  kRepkt,
  kRecpkt,
  kRecspkt,
  kGlres,
  kGstore,
  kGstorePkt,
  kPipeline,
  kSemAcquire,
  kSemRelease,
};
std::string_view ToString(OpName name);
std::span<const std::string_view> OpNames();
bool IsPacketOp(OpName name);
// Packet ops that wait until all packets that they read are there.
bool PollsPackets(OpName name);

enum class ChannelType : uint8_t { kMemory, kPort, kSwitch, kNone };
inline constexpr size_t kNumChannelTypes = 3;  // without kNone
std::string_view ToString(ChannelType type);
std::span<const std::string_view> ChannelTypeNames();
std::span<const std::string_view> BufferNames();  // by BufferKind

// Chunks [index, index + size) of a buffer: of this rank, of a peer, or of all ranks of a switch channel.
struct Piece {
  enum class Where : uint8_t { kLocal, kRemote, kSwitch };
  Where where = Where::kLocal;
  BufferKind buffer = BufferKind::kInput;  // where local
  int32_t id = 0;                          // otherwise: in the threadblock's list
  int64_t index = 0, size = 0;
};

struct Op {
  OpName name = OpName::kNop;
  std::vector<Piece> src = {}, dst = {};
  std::vector<int32_t> channels = {};  // in the threadblock's list of this type
  ChannelType type = ChannelType::kNone;
  std::vector<int32_t> semaphores = {};
  int32_t barrier = 0, barrier_blocks = 0;
  int32_t group_block = 0, group_size = 1;  // this threadblock's share of the op's bytes
  bool sums = false;                        // names an operator, and that is sum
  int64_t unit_bytes = 0, unit_chunks = 0;  // a pipeline repeats its ops for every unit_bytes
  std::vector<Op> ops = {};                 // ops of a pipeline
  bool apart = false;  // hint: a put that is an instruction of its own behind the receive of its data
};

struct Block {
  std::vector<Op> ops;
  std::array<std::vector<int32_t>, kNumChannelTypes> channels;  // by type: in the rank's list
  std::array<std::vector<int32_t>, 2> remotes;                  // by type: in the rank's remote buffers
  int32_t continues = -1;  // the threadblock that this one is the next part of; -1: none
  // Hints: links of the machine that the plan was made for. The path of the threadblock's sends, and the path
  // of the messages that a switch adds up for it. Empty: not said.
  std::vector<LinkId> links = {}, recv_links = {};
};

struct Switch {
  BufferKind buffer = BufferKind::kInput;
  int64_t chunks = 0;
  std::vector<int32_t> ranks;
};
struct RemoteBuffer {
  int32_t rank = 0;
  BufferKind buffer = BufferKind::kScratch;
  std::vector<ChannelType> types = {};
};

struct Gpu {
  int64_t input = 0, output = 0, scratch = 0;  // chunks
  std::array<std::vector<int32_t>, 2> peers;   // by type: the peer of every channel
  std::vector<Switch> switches;
  std::vector<RemoteBuffer> remotes;
  std::vector<int32_t> semaphores;  // their first values
  std::vector<Block> blocks;
};

struct File {
  std::string name = "xccl", collective;
  bool packets = false;  // protocol LL
  bool in_place = false, double_scratch = false, reuse = false;
  int32_t threads = 1024;
  int64_t alignment = kAlignment, min_bytes = 0;
  uint64_t max_bytes = std::numeric_limits<uint64_t>::max();
  int32_t slots = 0;  // slots of the program that the file was written from; 0: not said
  std::vector<Gpu> gpus;
};

std::string WriteFile(const File& file);

// Errors: kInvalidInput with the place of a value that is missing, of another type or out of range. Indexes
// of chunks, channels and buffers are left to CheckLimits.
StatusOr<File> ReadFile(std::string_view text, std::string_view name);

// Checks the file against the executor's limits: counts that it has no room for, and ops that it rejects or
// runs wrongly. Errors: kInvalidInput with the rank, threadblock and op, after `name`.
Status CheckLimits(const File& file, std::string_view name);
// Ops that some executors run wrongly, or that do nothing: a line for each kind, with the first of them.
std::vector<std::string> LimitWarnings(const File& file, std::string_view name);

// "put", "rank 2 threadblock 0 op 5 (put)".
std::string PlaceOf(int64_t rank, int64_t block, int64_t op, OpName name);

}  // namespace xccl::mscclpp
