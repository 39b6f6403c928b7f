// The last pass: how many passes a program makes, and how many instances share them.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// Sets program.segment_bytes and program.instances for one size. Tries a fixed list of choices with
// SimulateProgram and takes the cheapest (instances, then passes) within a hundredth of the fastest; a
// program too large to be simulated often gets the middle of the list. Deterministic.
Status ChooseSegments(const Collective& collective, const Topology& topology, int64_t size_bytes,
                      Program& program);

}  // namespace xccl
