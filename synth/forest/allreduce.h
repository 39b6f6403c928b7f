// Allreduce by trees that each sum upward and hand the result downward: better than reduce_scatter and
// allgather where some ranks have less bandwidth than others, because those need not be roots (on an n×n mesh
// by 2n/(n+1)). docs/engines/forest.md.
#pragma once

#include "base/status.h"
#include "synth/common/step_limit.h"
#include "synth/common/synthesizer.h"

namespace xccl::forest {

// Does the machine consist of GPUs alone, all of them members? Errors: kInvalidInput.
Status NeedsGpusAlone(const SynthesisRequest& request);

// Serves allreduce and barrier of all ranks where GPUs are joined directly. Bandwidth-optimal where every
// cable is as fast in both directions: the rate is the bound of partitions (docs/ir.md, lower bounds), which
// no plan beats, to within kTreeTolerance. Errors: kInvalidInput, not served; kLimit, where `budget` allows
// none. Requires: CheckReachable.
StatusOr<Synthesis> SynthesizeAllreduceTrees(const SynthesisRequest& request, StepBudget& budget);

// Are GPUs joined directly, all of them members, with as much bandwidth from a to b as from b to a? No trees
// are better then, up to their number.
bool HasEvenCables(const SynthesisRequest& request);

}  // namespace xccl::forest
