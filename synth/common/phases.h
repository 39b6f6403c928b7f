// A collective as at most two copy problems. The spread copies whole values. The gather brings contributions
// together: it is a copy problem on the reversed machine, whose moves run backwards as sums.
#pragma once

#include <cstdint>

#include "base/status.h"
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
  CopyProblem gather;  // on `reversed`: from the rank that makes the sum to the contributors
  CopyProblem spread;  // on `topology`
  bool has_gather = false, has_spread = false;
};

// Errors: kInvalidInput for user-defined collectives whose sums do not have this form.
StatusOr<Phases> MakePhases(const Topology& topology, const Topology& reversed, const Collective& collective,
                            int64_t size_bytes, TimeModel model, SumAt sum_at);

}  // namespace xccl
