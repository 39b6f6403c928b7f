// A slowed whole machine, for the time of a compressed schedule of a damaged machine. The input is a schedule
// that verifies. The result is a machine on which the schedule's columns are simulated. docs/ir.md, section
// 5.
#pragma once

#include <cstdint>

#include "ir/schedule.h"
#include "ir/sizes.h"
#include "ir/translated.h"
#include "topologies/topology.h"

namespace xccl {

// A machine on which all links of an orbit are as slow as the slowest of them. The slowest link may lack
// bandwidth, may carry bytes of detours or of heirs of lost ranks, and may be part of a path that is longer.
struct SlowedMachine {
  Topology topology;     // the whole machine's nodes and links
  int64_t least_ps = 0;  // the most time that a link with changed bytes or bandwidth needs
};
// Returns the slowed machine. `sizes`: those of the whole machine's collective. Cost: near linear in the
// columns, the links, and what the damage changes.
SlowedMachine SlowedOf(const Schedule& schedule, const CollectiveSizes& sizes, const Topology& topology,
                       const Translations& translations);

}  // namespace xccl
