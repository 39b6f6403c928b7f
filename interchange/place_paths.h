// Paths over a machine for the connections and groups of a program whose paths are hints, or missing.
#pragma once

#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// Keeps the program's paths where each is one of the machine, between the right ranks; a branch of a group
// follows from the group's. Where one is not, none is kept. A group then takes a switch that its root and all
// members have links to. A connection takes a path through no other GPU: as wide as the widest and, among
// those, as short as the best (topologies/paths.h), over the links that are least loaded by what was placed
// before it. Groups come first, and of connections those that carry most. Returns how many paths the program
// had that were not kept. Errors: kInvalidInput "rank 0 -> rank 3: ..." where there is no such path or
// switch, or where the machine has another number of ranks. Requires: no fan-ins. Cost: per connection, links
// within the length of its path.
StatusOr<int64_t> PlacePaths(Program& program, const Collective& collective, const Topology& topology);

}  // namespace xccl
