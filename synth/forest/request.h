// The questions that forest asks of a request before it packs trees: does it serve the kind, does the
// machine's symmetry help, how large would the linear program be. Linear in the machine.
#pragma once

#include <cstdint>

#include "ir/collective.h"
#include "synth/common/fractional_packing.h"
#include "synth/common/synthesizer.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl::forest {

inline constexpr int64_t kMostRows = 800;  // of the linear program: links and roots

inline constexpr CollectiveKind kServed[] = {CollectiveKind::kAllgather,     CollectiveKind::kAllgatherv,
                                             CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv,
                                             CollectiveKind::kBroadcast,     CollectiveKind::kReduce,
                                             CollectiveKind::kAllreduce,     CollectiveKind::kBarrier};

// allgather and the like, in contrast to broadcast and reduce.
bool HasManyRoots(const Collective& collective);
bool IsUneven(const Collective& collective);
// Symmetry serves where all ranks do the same.
bool MayUseSymmetry(const Topology& topology, const Collective& collective);
// One root an orbit; links of an orbit are alike.
void TakeOrbits(const SymmetryGroup& group, PackingProblem& problem);
// May ranks that the machine cannot tell apart take turns?
bool MayHaveTwins(const SynthesisRequest& request);
// Rows of the linear program without symmetry; twins are one.
int64_t NumRows(const SynthesisRequest& request);
// With symmetry orbits are the rows.
int64_t NumRows(const SymmetryGroup& group);

}  // namespace xccl::forest
