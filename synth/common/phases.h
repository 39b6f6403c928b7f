// A collective as at most two copy problems: contributions come together (searched backwards, on the reversed
// topology), and whole values spread.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/schedule.h"
#include "ir/time_model.h"
#include "synth/common/problem.h"

namespace xccl {

// The rank that makes a chunk's sum, where the collective leaves it open.
enum class SumAt : uint8_t {
  kEach,    // the ranks that need it, chunk by chunk in turn: reduce_scatter and allgather
  kCenter,  // one rank for all chunks, near to all: reduce and broadcast
};

// Requires: `reversed` is `topology` with every link reversed; both outlive the Phases.
struct Phases {
  CopyProblem
      gather;  // on `reversed`: from where the sum is made to the contributors; its moves run backwards
  CopyProblem spread;  // on `topology`
  bool has_gather = false, has_spread = false;
};

// Errors: kInvalidInput for user-defined collectives whose sums do not have this form.
StatusOr<Phases> MakePhases(const Topology& topology, const Topology& reversed, const Collective& collective,
                            int64_t size_bytes, TimeModel model, SumAt sum_at);

// Copies found for `gather`, run backwards as sums on the machine itself: what went from a to b comes from b
// to a. A rank without a contribution of its own is copied to by the first sum that reaches it. That copy
// must come alone in its step; with `copies_first` it does, since every step becomes two. Not normalized.
Schedule RunBackwards(const CopyProblem& gather, const Schedule& copies, bool copies_first);

}  // namespace xccl
