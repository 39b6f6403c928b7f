// The time of a compressed schedule of a damaged machine: the whole machine, slowed by what the damage
// brings. The input is a schedule that verifies; the result is a machine on which its columns are simulated.
// docs/ir.md, section 5.
#pragma once

#include <cstdint>

#include "ir/schedule.h"
#include "ir/sizes.h"
#include "ir/translated.h"
#include "topologies/topology.h"

namespace xccl {

// A machine on which each link of an orbit is as slow as the slowest one: with the bytes of detours and of
// what heirs of lost ranks take over, the missing bandwidth, and the latency by which such paths are longer.
struct SlowedMachine {
  Topology topology;     // the whole machine's nodes and links
  int64_t least_ps = 0;  // what links need for paths that no column takes
};
// `sizes` are those of the whole machine's collective. Cost: near linear in the columns, the links, and what
// the damage changes.
SlowedMachine SlowedOf(const Schedule& schedule, const CollectiveSizes& sizes, const Topology& topology,
                       const Translations& translations);

}  // namespace xccl
