// The memory layout of the kernels of expert dispatch and combine: plain structs shared by the host compiler,
// nvcc and NVRTC. A kernel takes an ExpertArgs by value; one launch is one rank's part of one call.
//
// Dispatch has workers × (depths + 1) threadblocks. Block b has the role b ÷ workers and the number
// w = b mod workers. Role d sends over the connections that leave ranks of depth d: role 0 sends the rank's
// own rows, role d > 0 takes what comes from senders of depth d - 1, keeps what the rank needs and passes the
// rest on; the last role only takes. Combine has `workers` blocks. Block w of every role and rank has the
// tokens with (token ÷ lanes) mod workers = w, and rings of its own, so no two blocks write one ring.
//
// Ring: `num_slots` slots in the receiver's memory. `head`, beside them, counts the messages put; `tail`, in
// the sender's memory, the messages taken. Both only grow, modulo 2^64, and each end keeps its own count in
// its own memory between launches, so a captured launch may be replayed. Message m is in slot m mod
// num_slots.
//   dispatch  a slot has a SlotHead, then rows_per_message headers, then as many rows; the last message of a
//             call says so.
//   combine   a slot has one row. Nothing says which: all ranks go through the tokens of a worker in one
//             order, and through the ranks that a token needs in ascending order.
// A row's header has its home and token (4 bytes each), then top_k weights (float), then top_k experts (2
// bytes each, -1: none).
#pragma once

#include "device/abi.h"

namespace xccl::device {

#ifdef __CUDACC_RTC__
using int16_t = short;
#endif

inline constexpr int32_t kMostPositions = 64;     // of a token; dispatch/routing.h, kMostTopK
inline constexpr int32_t kMostHeaderBytes = 400;  // 8 + 6 × kMostPositions, rounded up to 16
inline constexpr int32_t kExpertThreads = 256;    // of a block
inline constexpr int32_t kPlacesOfChunk = 256;    // places that one warp counts at a time
inline constexpr int32_t kMostExpertThreads = 512;
// ErrorRecord::peer where something is refused that is not of a token: the number of tokens, the number of
// entries, or null rows of combine.
inline constexpr int32_t kTokens = -1, kEntries = -2, kRows = -3;
// ErrorRecord::expected where a token chooses an expert twice; else the largest number that is accepted.
inline constexpr uint64_t kOnce = ~uint64_t{0};

struct SlotHead {
  int32_t rows = 0, last = 0;
  int32_t reserved[2] = {};
};
static_assert(sizeof(SlotHead) == 16);

// One end's own memory of a ring.
struct RingState {
  uint64_t count = 0;  // messages of all calls so far that this end put or took
  int32_t filled = 0;  // dispatch, sender: rows in the message that is being filled; 0 between launches
  int32_t ended = 0;   // dispatch, receiver: the last message of the call was taken; 0 between launches
};
static_assert(sizeof(RingState) == 16);

// One end of a ring, as its rank sees it.
struct RingEnd {
  char* slots = nullptr;       // the receiver's memory
  uint64_t* head = nullptr;    // the receiver's memory
  uint64_t* tail = nullptr;    // the sender's memory
  RingState* state = nullptr;  // this rank's memory
  int32_t num_slots = 0;
  int32_t peer = 0;
  uint64_t reserved[3] = {};
};
static_assert(sizeof(RingEnd) == 64);

// The values that stay from launch to launch, one per rank. Places number a rank's connections: `in` and
// `out` are those that bring rows to it and take rows from it in dispatch, by (depth of the sender, lane,
// peer).
struct ExpertRank {
  int32_t rank = 0, ranks = 0;
  int32_t local_experts = 0, top_k = 0, max_tokens = 0;
  int32_t lanes = 1, depths = 0, workers = 1, rows_per_message = 1;
  int32_t num_domains = 0;
  int32_t nested = 0;                                                       // Entry::kNested
  int32_t adds_on_way = 0;                                                  // Sums::kOnWay
  int32_t chunks = 0;                                                       // of kPlacesOfChunk places
  int64_t row_bytes = 0, header_bytes = 0, slot_bytes = 0, back_bytes = 0;  // back_bytes: a slot of combine
  const int16_t* parents = nullptr;                                         // ExpertPlan::parents
  const int32_t* domains = nullptr;                                         // by rank
  // But for Entry::kFixed: (lane × ranks + home) × domains + domain: the tree's entry, or -1.
  const int32_t* entries = nullptr;
  const int32_t* in_at = nullptr;   // (lane × depths + depth of the sender) × ranks + sender: place, or -1
  const int32_t* out_at = nullptr;  // (lane × depths + own depth) × ranks + receiver: place, or -1
  const int32_t* in_begin = nullptr;   // by depth of the sender: its first place; depths + 1 of them
  const int32_t* out_begin = nullptr;  // likewise
  const RingEnd* in = nullptr;         // place × workers + worker: dispatch, rows come
  const RingEnd* out = nullptr;        // dispatch, rows go
  const RingEnd* up = nullptr;         // by place of `in`: combine, rows go
  const RingEnd* down = nullptr;       // by place of `out`: combine, rows come
  uint64_t* arrived = nullptr;         // by block of dispatch: barriers that it came to
};

// The results that a dispatch leaves for its combine and for the caller, in this rank's memory. A *place* is
// home × max_tokens + token; the row of a token is at its place in the caller's buffer.
struct ExpertHandle {
  uint32_t* epoch = nullptr;        // dispatches into this handle so far
  uint32_t* stamps = nullptr;       // by place: the last dispatch that saw it, here or on the way
  char* headers = nullptr;          // by place
  int32_t* entry_of = nullptr;      // place × top_k + position: entry, where the position's expert is here
  int32_t* counts = nullptr;        // chunk × (local_experts + 1) + column; column local_experts counts rows
  int32_t* rows = nullptr;          // [1] rows that this rank needs
  int32_t* places = nullptr;        // by row, in the order of (home, token): its place
  int32_t* rows_of_home = nullptr;  // by rank
  int32_t* rows_of_expert = nullptr;   // by local expert
  int32_t* first_of_expert = nullptr;  // sums of those before each; one more at the end
  int32_t* row_of_entry = nullptr;     // by local expert, then place: the place of its row
  float* weight_of_entry = nullptr;    // likewise
  // Memory of the host, or null: rows, then rows_of_expert, then `epoch` as the last word, which is stored
  // last.
  uint32_t* host_counts = nullptr;
};

enum class ExpertCall : int32_t { kDispatch, kCombine };
// The rows that a rank gives to combine; dispatch::Outputs.
enum class ExpertOutputs : int32_t {
  kWeighted,  // by entry; each counts times the entry's weight
  kPlain,     // by entry
  kOfRows,    // by place
};

// By place, what a dispatch tells of a row; -1 and 0 where none came. Null: it is not told.
struct PlaceTables {
  int32_t* homes = nullptr;
  int32_t* tokens = nullptr;
  int32_t* experts = nullptr;  // place × top_k + position: local expert, or -1
  float* weights = nullptr;    // likewise; 0 where experts has -1
};

struct ExpertArgs {
  LaunchArgs launch;  // error, stop, abort and spin_limit_ns
  const ExpertRank* rank = nullptr;
  ExpertHandle handle;
  ExpertCall call = ExpertCall::kDispatch;
  int32_t blocks = 0;
  // dispatch
  const int32_t* tokens = nullptr;  // [1] tokens of this rank, at most max_tokens; null: own_tokens
  int32_t own_tokens = 0;
  int32_t same_choices = 0;                // choices and weights are those of the handle's last dispatch
  const void* experts = nullptr;           // int32_t or int64_t by token and position, -1: none
  int32_t wide_experts = 0;                // they are int64_t
  int32_t most_entries = 0;                // more make the call give up
  const float* weights = nullptr;          // as experts; null: all are 1
  int64_t row_bytes = 0, scale_bytes = 0;  // multiples of 16, together at most ExpertRank::row_bytes
  const char* rows = nullptr;              // by token
  const char* scales = nullptr;            // likewise; they travel behind the row
  char* received = nullptr;                // by place
  char* received_scales = nullptr;         // likewise
  PlaceTables told;
  // combine
  ExpertOutputs outputs_are = ExpertOutputs::kWeighted;
  const char* outputs = nullptr;
  char* result = nullptr;      // by token
  int64_t back_row_bytes = 0;  // of a row; a multiple of 16
};

}  // namespace xccl::device
