// Runs an MSCCL++ plan without data: finds the steps of its threadblocks, in an order that their signals,
// semaphores, barriers and packets allow, and whether ops that touch one chunk are ordered. Private to the
// reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "interchange/mscclpp/file.h"
#include "ir/program.h"

namespace xccl::mscclpp {

// A run of chunks at a rank. Packets are chunks behind the plain ones of scratch, and so are sums on the way.
struct Place {
  BufferKind buffer = BufferKind::kInput;
  int64_t begin = 0;
  bool operator==(const Place&) const = default;
};

// One thing that a threadblock does: it sends src, receives into dst, or makes dst of src, of src and src2,
// or of src and dst. The send and the receive of a message name each other. A step of a switch stores src in
// dst of the ranks `to`, after it has added to it what the ranks `from` have there; then it also stores it in
// its own dst. The sends and receives of the ranks `from` and `to` name the step as their other end.
struct Step {
  enum class Kind : uint8_t { kSend, kRecv, kCopy, kSum, kAdd, kSwitch };
  Kind kind = Kind::kCopy;
  int32_t rank = 0, block = -1, op = 0;  // place in the plan; block -1: nobody has waited for the receive
  OpName name = OpName::kNop;
  ChannelType type = ChannelType::kNone;
  Place src, src2, dst;
  int64_t count = 0;
  bool apart = false;                       // the hint of Op
  int32_t other = -1;                       // other end of a send or receive; else -1
  bool aside = false;                       // done for another rank's threadblock, in none of this rank's own
  std::vector<int32_t> after = {};          // steps of this rank that come first
  int32_t readers = 0;                      // number of steps that read this one's result
  int32_t reader = -1;                      // the last of them
  int32_t signal = -1;                      // signal that told of a receive; -1: packets, or none yet
  std::vector<int32_t> from = {}, to = {};  // ranks of a switch's step: ascending, without its own
};

struct Run {
  std::vector<Step> steps;                                // in an order in which all can be done
  std::vector<std::vector<std::vector<int32_t>>> blocks;  // by rank and threadblock: steps in order
  std::vector<int64_t> scratch;                           // by rank: chunks, with packets and sums on the way
};

// One call. Errors: kInvalidInput after `name` for races, deadlocks, signals and semaphores that are left
// over, and data that nobody waits for; kLimit where there are too many threadblocks, or their clocks have
// too many entries. `plain_switches`: the work of switches is done rank by rank. Requires: CheckLimits finds
// nothing. Cost: linear in the ops × threadblocks.
StatusOr<Run> RunFile(const File& file, std::string_view name, bool plain_switches);

// Several calls in a row, whose ranks do not wait for each other between them, while callers write to inputs
// and outputs as soon as their own rank's kernel has ended. Errors and cost: those of RunFile.
Status CheckCalls(const File& file, std::string_view name);

}  // namespace xccl::mscclpp
