// The alternatives of lowering as data: the forms that a program may have.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/collective.h"
#include "ir/lower/segments.h"
#include "ir/schedule.h"

namespace xccl::lowering {

struct Form {
  std::optional<int32_t> slots = {};  // of a connection; absent: as many as the schedule has under way
  bool fuse = true;                   // join a receive and the send that forwards it
  bool pace = true;                   // threadblocks that share a link send in order
  Segments segments = Segments::kTimed;
  int32_t merge = 16;  // most neighbouring chunks that one instruction moves
  bool operator==(const Form&) const = default;
};

// The forms to be tried, plainest first. Plain means: few slots, since they are memory; fused,
// since a value is then read once less; not paced, since pacing makes threadblocks wait for one another.
// Above 50,000 moves three forms are left. Above `large_moves` programs are too large to be simulated, and
// there is one form. If the schedule is fast in few segments, that is the faithful one, which does everything
// when the schedule does it, in one pass; else a middle one.
std::vector<Form> FormsFor(const Schedule& schedule, const Collective& collective, int64_t size_bytes,
                           int64_t num_moves, int64_t large_moves);

}  // namespace xccl::lowering
