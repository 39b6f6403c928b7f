// The forms that a program of one schedule may have, as data.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/collective.h"
#include "ir/lower/segments.h"
#include "ir/schedule.h"

namespace xccl::lowering {

// Moves above which a program is made in few forms, and in the schedule's own chunks not at all where waves
// can be folded: simulating a form takes tenths of a second.
inline constexpr int64_t kManyMoves = 50'000;
// Moves above which a program has one form, which is not simulated: the simulation takes seconds.
inline constexpr int64_t kLargeMoves = 500'000;

struct Form {
  // Slots of a connection. Absent: as many as the schedule has messages under way (OrderMoves).
  std::optional<int32_t> slots = {};
  bool fuse = true;  // join a receive and the send that forwards it
  bool pace = true;  // threadblocks that share a link send in order
  Segments segments = Segments::kTimed;
  int32_t merge = 16;  // most neighbouring chunks that one instruction moves
  bool operator==(const Form&) const = default;
};

// Returns the forms to be tried, plainest first. A plain program has few slots, which are memory; it is
// fused, so a value that is sent on is read once less; and it is not paced, since pacing makes threadblocks
// wait for one another. Above kManyMoves three forms are left. Above kLargeMoves a program is too large to be
// simulated, and one form is left. Where the schedule needs few segments, that form follows the schedule's
// times most closely, in one pass; else it makes a middle number of passes.
std::vector<Form> FormsFor(const Schedule& schedule, const Collective& collective, int64_t size_bytes,
                           int64_t num_moves);

}  // namespace xccl::lowering
