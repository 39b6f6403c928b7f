// Rule S7, about the symmetry of a compressed schedule: part of VerifySchedule (ir/verify/verify_schedule.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// Calls report(where, text) for what is wrong with the generators, or with what they do to the collective.
// Requires: the collective's ranks are the topology's. Returns, when nothing is wrong, which chunks represent
// their translates; else nothing. Cost: generators × (nodes + links log links).
std::vector<bool> CheckSymmetry(const Schedule& schedule, const Collective& collective,
                                const Topology& topology,
                                const std::function<void(std::string where, std::string text)>& report);

}  // namespace xccl
