// Bounds of large damaged machines. The other bounds are quick only if translations make ranks alike, and a
// damaged machine lacks translations. The whole machine has more and faster links, so its bounds hold for the
// damaged machine, too. Cuts around the damage can raise them.
#pragma once

#include <optional>

#include "ir/bounds/orbits.h"
#include "ir/collective.h"
#include "ir/sizes.h"
#include "topologies/topology.h"

namespace xccl {

// Returns whether all members reach each other. Cost: linear in the machine.
bool AllReachEachOther(const Topology& topology, const Collective& collective);

// The whole machine. Bounds are computed for it and not for the damaged machine.
struct WholeMachine {
  Topology topology;
  bool has_more_ranks = false;  // its bounds then do not hold for the damaged machine
};
// Returns the whole machine, if the machine is large and damaged and its members reach each other. Returns
// nullopt if the whole machine has as many ranks and they are not all alike, because its bounds would not be
// quicker.
std::optional<WholeMachine> WholeForBounds(const Topology& topology, const Collective& collective,
                                           Orbits& orbits);

// Returns in seconds the longest time that bytes take to cross a cut of a damaged machine. Tries the cuts
// around each GPU, each host, each group that fast links join, and each group below a tier of switches. For
// an allreduce, also counts the passes between these groups (PartitionSeconds). Returns 0 unless the
// collective is an allgather, reduce_scatter, alltoall, allreduce, broadcast or reduce. Linear.
double CutsAroundDamage(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes);

}  // namespace xccl
