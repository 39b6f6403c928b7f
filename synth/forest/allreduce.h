// Allreduce over spanning trees. Each tree sums its share of the buffer up to its root, then copies the
// result down. Ranks with little bandwidth need not be roots. If some ranks have less bandwidth than others,
// the trees are therefore faster than a reduce_scatter and an allgather: on an n×n mesh by a factor of
// 2n/(n+1). docs/engines/forest.md.
#pragma once

#include "base/status.h"
#include "synth/common/step_limit.h"
#include "synth/common/synthesizer.h"

namespace xccl::forest {

// Returns OK if every node of the machine is a GPU and a member. Errors: kInvalidInput.
Status NeedsGpusAlone(const SynthesisRequest& request);

// Plans an allreduce or barrier of all ranks on a machine of GPUs alone. No plan has a higher rate than the
// bound of partitions (docs/ir.md, lower bounds) if every cable is equally fast in both directions. For large
// sizes, the rate is within kTreeTolerance of the bound, unless one of the TreePackingLimits ends the
// packing. Errors: kInvalidInput if NeedsGpusAlone fails, or if cables that are fast enough to count do not
// join all ranks in both directions; kLimit if `budget` allows no plan. Requires CheckReachable.
StatusOr<Synthesis> SynthesizeAllreduceTrees(const SynthesisRequest& request, StepBudget& budget);

// Returns whether NeedsGpusAlone holds and any two GPUs have equal bandwidths in both directions, added up
// over parallel links. Unless parallel links differ or a limit ends the packing, no trees then have a higher
// rate than those of SynthesizeAllreduceTrees, except by kTreeTolerance.
bool HasEvenCables(const SynthesisRequest& request);

}  // namespace xccl::forest
