// The forms in which a schedule may be lowered.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/collective.h"
#include "ir/lower/segments.h"
#include "ir/schedule.h"

namespace xccl::lowering {

// A schedule of more moves than this (moves.h) is lowered in few forms, because simulating a form takes
// tenths of a second. If its waves can be folded, it is not lowered in its own chunks.
inline constexpr int64_t kManyMoves = 50'000;
// A schedule of more moves than this is lowered in one form, which is not simulated: that takes seconds.
inline constexpr int64_t kLargeMoves = 500'000;

struct Form {
  // Slots of a connection. Absent: as many as the schedule has messages under way, up to OrderMoves' limit.
  std::optional<int32_t> slots = {};
  bool fuse = true;  // join a receive and the send that forwards it
  bool pace = true;  // threadblocks that share a link send in order
  Segments segments = Segments::kTimed;
  int32_t merge = 16;  // most neighbouring chunks that one instruction moves
  bool operator==(const Form&) const = default;
};

// Returns the forms to try, the plainest first. A plain form has few slots, because slots are memory. It is
// fused, so that a value that is sent on is read once less. It is not paced, because pacing makes
// threadblocks wait for one another. Above kManyMoves, three forms are tried; above kLargeMoves, one. If the
// simulated schedule has few segments, this one form makes one pass that follows the schedule's times as
// closely as possible; else it is fused and has the passes of Segments::kMiddle.
std::vector<Form> FormsFor(const Schedule& schedule, const Collective& collective, int64_t size_bytes,
                           int64_t num_moves);

}  // namespace xccl::lowering
