// A Program made ready for one rank at one size: offsets in bytes, connections by index, passes so short that
// every message fits a slot. The executor's number of passes does not change the result, since passes touch
// disjoint slices. It follows from the slots' size, not from the program's segment, which is chosen for a
// GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "ir/sizes.h"
#include "runtime/transport/wiring.h"

namespace xccl {

// One chunk of an instruction; all passes touch parts of it. Offsets are within the operands' buffers.
struct ByteRange {
  int64_t elements = 0;
  int64_t src_begin = 0;  // bytes
  int64_t dst_begin = 0;
};

struct Step {
  Opcode op = Opcode::kNop;
  BufferKind src = BufferKind::kInput;
  BufferKind dst = BufferKind::kInput;
  bool first = false, final = false;
  // The sent data may be read from this rank's memory until the end of the operation: nothing overwrites it.
  bool direct = false;
  int32_t range_first = 0, range_count = 0;
  int32_t dep_first = 0, dep_count = 0;
};

struct ThreadblockWork {
  std::vector<int32_t> send, recv;           // connections: none, one, or a group's in order of its members
  std::vector<Rank> send_peers, recv_peers;  // by connection
  int32_t channel = 0;
  std::optional<int32_t> fan_in_own = {};  // Group::own, where `recv` is a fan-in
  std::vector<Step> steps;
};

struct RankWork {
  Rank rank;
  int32_t passes = 1;
  int32_t members = 1;  // n of avg
  int64_t input_bytes = 0, output_bytes = 0, scratch_bytes = 0;
  int64_t element_bytes = 1;
  std::vector<ThreadblockWork> threadblocks;
  std::vector<ByteRange> ranges;
  std::vector<Dependency> dependencies;
};

// The number of passes with which every message of every rank, with its head, fits slot_bytes. It is equal on
// all ranks.
StatusOr<int32_t> PassesFor(const Program& program, const Collective& collective,
                            const CollectiveSizes& sizes, int64_t slot_bytes);
// Requires: the program verifies. `allow_direct`: ranks share an address space. Errors: kInvalidInput for an
// operand whose chunks differ in size from its counterpart's.
StatusOr<RankWork> PrepareRank(const Program& program, const Collective& collective,
                               const CollectiveSizes& sizes, const Wiring& wiring, Rank rank, int32_t passes,
                               bool in_place, bool allow_direct);

// Bytes that a slice of `elements` takes in a slot: slices start at multiples of 16.
inline int64_t PaddedBytes(int64_t elements, int64_t element_bytes) {
  return (elements * element_bytes + 15) / 16 * 16;
}

}  // namespace xccl
