// Broadcast and reduce over trees that together respect the bandwidth of every link. The rate of the trees is
// the least cut between the root and any rank, and no plan has a higher rate. docs/engines/forest.md.
#pragma once

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl::forest {

// Plans a broadcast or reduce of all ranks on a machine of GPUs alone. The rate is that of the least cut if
// kMostArborescences trees are enough for it, and on full meshes. Otherwise it is the best rate found with
// kMostArborescences trees. Errors: kInvalidInput if NeedsGpusAlone fails or the bandwidths are 2^62 units or
// more in all; kLimit if no plan has as few steps as --steps allows. Requires CheckReachable.
StatusOr<Synthesis> SynthesizeBroadcastTrees(const SynthesisRequest& request);

}  // namespace xccl::forest
