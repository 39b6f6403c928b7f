// Broadcast and reduce over trees that together respect the bandwidth of every link. No plan has a higher
// rate than the least cut between the root and any rank, which the trees can reach. docs/engines/forest.md.
#pragma once

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl::forest {

// Plans a broadcast or reduce of all ranks on a machine of GPUs alone. Small sizes may use a single tree, and
// given chunks limit the number of trees. Otherwise the rate is that of the least cut if kMostArborescences
// trees are enough for it, or if the machine is a full mesh of equal links. If neither holds, the rate is the
// best found with kMostArborescences trees. Errors: kInvalidInput if NeedsGpusAlone fails or the bandwidths
// add up to 2^62 times their common divisor or more; kLimit if no plan has as few steps as --steps allows.
// Requires CheckReachable.
StatusOr<Synthesis> SynthesizeBroadcastTrees(const SynthesisRequest& request);

}  // namespace xccl::forest
