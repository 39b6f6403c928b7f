// Rules S8 and S9: a compressed schedule of a damaged machine. Its detours are chains of links that the
// machine has, and every translate that passes a lost link has one. Where hosts are lost, every chunk travels
// along a tree, and what heirs of lost ranks take over has a path; in an alltoall, lost ranks pass nothing on
// between ranks that are there.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// Calls this with the place of a violation and what is wrong there.
using ReportDamage = std::function<void(std::string, std::string)>;

// Returns the whole machine. Returns nullopt if nothing is missing, or after a report.
std::optional<Topology> CheckMissing(const Schedule& schedule, const Topology& topology,
                                     const ReportDamage& report);

// Checks the detours and the translates. Requires: the whole machine, rules S2 and S7. Cost: linear in the
// detours and in the translates that pass damaged links.
void CheckDetours(const Schedule& schedule, const Topology& topology, const Topology& whole,
                  const ReportDamage& report);

// Rule S9. Checks the trees of chunks, the ways, and the paths of what heirs take over; in an alltoall, who
// passes chunks on. Requires: lost hosts, the whole machine and its collective, and rules S1, S2 and S7.
// Cost: linear in the columns' chunks and in what heirs take over; in an alltoall, in the lost ranks × the
// columns' chunks.
void CheckLostHosts(const Schedule& schedule, const Collective& collective, const Topology& topology,
                    const Topology& whole, const Collective& of_whole, const ReportDamage& report);

}  // namespace xccl
