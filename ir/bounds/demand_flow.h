// Demands, cuts and flows for the bounds of alltoall(v) and sendrecv. In an alltoall every member sends the
// same number of bytes to every other member. So the demands of one source of each orbit suffice, and the
// bytes across a cut follow from the number of members on each side. No loop over pairs is needed.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/bounds/concurrent_flow.h"
#include "ir/bounds/demands.h"
#include "ir/collective.h"
#include "ir/sizes.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

struct DemandFlow {
  FlowProblem problem;                  // demands of the sources that represent their orbits
  std::vector<int32_t> sources, sinks;  // nodes of all demands, ascending
  double cuts_s = 0;                    // QuickCuts() of all demands; 0 if not asked for
};
// Returns the flow of all demands. Requires that the translations of `group` take demands to equal demands.
DemandFlow DemandFlowOf(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
                        const SymmetryGroup& group, bool with_cuts);

// Returns the options with which a bound solves the flow. Large machines get fewer rounds, so that the time
// is linear in sources × links. Any number of rounds gives a valid bound.
FlowOptions BoundFlowOptions(const FlowProblem& problem);

}  // namespace xccl
