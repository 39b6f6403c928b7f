// Broadcast and reduce by trees that share no link beyond its bandwidth: at the rate of the least cut between
// the root and any rank, which no plan exceeds. docs/engines/forest.md.
#pragma once

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl::forest {

// Serves broadcast and reduce of all ranks where GPUs are joined directly. The rate is that of the least cut
// wherever at most kMostArborescences trees do (or, with more, full meshes); else that of so many.
// Errors: kInvalidInput, not served, or bandwidths beyond 2^62 units in all; kLimit, --steps.
// Requires: CheckReachable.
StatusOr<Synthesis> SynthesizeBroadcastTrees(const SynthesisRequest& request);

}  // namespace xccl::forest
