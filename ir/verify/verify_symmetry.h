// Rule S7, on the symmetry of a compressed schedule: part of VerifySchedule (ir/verify/verify_schedule.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// Calls report(where, text) for every fault of the generators, or of their effect on the collective. If there
// is none, returns which chunks represent their translates, up to the last of them; otherwise an empty
// vector. Requires: the collective's ranks are the topology's. Cost: generators × (nodes + links log links).
std::vector<bool> CheckSymmetry(const Schedule& schedule, const Collective& collective,
                                const Topology& topology,
                                const std::function<void(std::string where, std::string text)>& report);

}  // namespace xccl
