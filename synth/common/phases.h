// Splits a collective into at most two copy problems. The spread copies whole values. The gather brings the
// contributions of sums together. It is a copy problem on the reversed machine; its moves run backwards as
// sums.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/time_model.h"
#include "synth/common/problem.h"

namespace xccl {

// The rank that makes a chunk's sum, if several ranks need the sum.
enum class SumAt : uint8_t {
  kEach,    // the ranks that need the sum, in turn by chunk: reduce_scatter, then allgather
  kCenter,  // one rank for all chunks, near to all members: reduce, then broadcast
};

// The copy problems of a collective.
struct Phases {
  CopyProblem gather;  // on `reversed`: from the rank that makes the sum to the contributors
  CopyProblem spread;  // on `topology`
  bool has_gather = false, has_spread = false;
};

// Returns the phases of the collective. Requires that `reversed` is `topology` with every link reversed, and
// that both outlive the Phases. Errors: kInvalidInput for some user-defined collectives. All ranks that need
// a chunk must need the same contributions. If they need several, exactly one rank must hold each, alone. No
// rank may hold another contribution to the chunk.
StatusOr<Phases> MakePhases(const Topology& topology, const Topology& reversed, const Collective& collective,
                            int64_t size_bytes, TimeModel model, SumAt sum_at);

}  // namespace xccl
