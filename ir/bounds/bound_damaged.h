// Bounds of large damaged machines. The other bounds rest on translations, which a damaged machine lacks. A
// machine with more and faster links is no slower, so that a bound of the whole machine holds, too; cuts
// around the damage are added.
#pragma once

#include <optional>

#include "ir/bounds/orbits.h"
#include "ir/collective.h"
#include "ir/sizes.h"
#include "topologies/topology.h"

namespace xccl {

// True if all members reach each other. Linear.
bool AllReachEachOther(const Topology& topology, const Collective& collective);

// The start of all bounds of a large damaged machine.
struct WholeMachine {
  Topology topology;
  bool has_more_ranks = false;  // so that its bounds are no bounds of the damaged machine
};
// The whole machine, if the machine is large and damaged, its members reach each other, and the whole one has
// ranks that are all alike or more of them.
std::optional<WholeMachine> WholeForBounds(const Topology& topology, const Collective& collective,
                                           Orbits& orbits);

// The seconds that bytes take to cross cuts of a damaged machine: around each GPU, each host, the groups that
// fast links join, and the groups below each tier of switches; in an allreduce also to pass from one of these
// groups to the other. 0 where parts may differ. Linear.
double CutsAroundDamage(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes);

}  // namespace xccl
