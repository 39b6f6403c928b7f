// Properties of a request that the engine "forest" needs before it packs trees: whether symmetry or twins
// help, and how large the linear program is. All functions are linear in the machine.
#pragma once

#include <cstdint>

#include "ir/collective.h"
#include "synth/common/fractional_packing.h"
#include "synth/common/synthesizer.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl::forest {

inline constexpr int64_t kMostRows = 800;  // the most rows of the linear program; links and roots are rows

inline constexpr CollectiveKind kServed[] = {CollectiveKind::kAllgather,     CollectiveKind::kAllgatherv,
                                             CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv,
                                             CollectiveKind::kBroadcast,     CollectiveKind::kReduce,
                                             CollectiveKind::kAllreduce,     CollectiveKind::kBarrier};

// Returns whether all members are roots, as in every collective except broadcast and reduce.
bool HasManyRoots(const Collective& collective);
bool IsUneven(const Collective& collective);
// Returns whether all ranks do the same, so that symmetry can be used.
bool MayUseSymmetry(const Topology& topology, const Collective& collective);
// Leaves one root for each orbit of ranks, and joins the links of each orbit into one row.
void TakeOrbits(const SymmetryGroup& group, PackingProblem& problem);
// Returns whether twins (synth/forest/twins.h) may exchange their roles.
bool MayHaveTwins(const SynthesisRequest& request);
// Returns the rows of the linear program without symmetry. Twins count as one rank.
int64_t NumRows(const SynthesisRequest& request);
// Returns the rows of the linear program with symmetry: the orbits of links and of ranks.
int64_t NumRows(const SymmetryGroup& group);

}  // namespace xccl::forest
