// Paths over a machine for the connections of a program that names none.
#pragma once

#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// Gives every connection a path through no other GPU: as wide as the widest and, among those, as short as the
// best (topologies/paths.h), over the links that are least loaded by the connections before it. Those that
// carry most come first. Errors: kInvalidInput "rank 0 -> rank 3: ..." where there is no such path, or where
// the machine has another number of ranks. Requires: no groups of switches. Cost: per connection, links
// within the length of its path.
Status PlacePaths(Program& program, const Collective& collective, const Topology& topology);

}  // namespace xccl
