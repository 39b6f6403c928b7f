// Paths over a machine for the connections and groups of a program whose paths are hints, or missing.
#pragma once

#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// Keeps the program's paths if all of them are paths of the machine between the right ranks; a branch of a
// group follows from the group's path. Otherwise it keeps none and chooses new paths. A group takes a switch
// to which its root and all members have links. A connection takes a path through no other GPU: as wide as
// the widest path, as short as the shortest of that width (topologies/paths.h), and over the links that are
// least loaded so far. Groups are placed first, then connections, the most loaded first. Returns how many
// paths of the program were not kept. Errors: kInvalidInput "rank 0 -> rank 3: ..." if the machine has no
// path or switch for a connection or group, or another number of ranks. Requires: no fan-ins. Cost: per
// connection, links within the length of its path.
StatusOr<int64_t> PlacePaths(Program& program, const Collective& collective, const Topology& topology);

}  // namespace xccl
