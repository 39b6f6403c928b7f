// Leads a compressed plan of a whole machine around the links and hosts that a damaged machine lacks.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"
#include "topologies/whole.h"

namespace xccl {

// The translations of a whole machine, which also turn switches (TurnSwitches). They are found where lost
// hosts are numbered as the machine's description would number them. Requires: MakeWhole returned the
// machine.
SymmetryGroup TranslationsOfWhole(const Topology& whole, const MissingLinks& missing);

// Makes the schedule, which is one of the whole machine, one of the damaged machine, with detours. Detours
// share what links they can choose by load; a slow link keeps what it carries as fast as they do. Heirs of
// lost ranks get ways where the columns have none. `collective` is that of the damaged machine. Errors:
// kInvalidInput "ENGINE: ..." if two ranks reach each other only through other GPUs, or if, in an alltoall,
// lost ranks would pass on what other hosts send to each other. Cost: near linear in the translates whose
// paths pass damaged links and in what heirs take over, and a search of the links around each damaged link.
Status LeadAround(Schedule& schedule, const MissingLinks& missing, const Topology& machine,
                  const Topology& whole, const SymmetryGroup& group, const Collective& collective,
                  int64_t size_bytes, std::string_view engine);

}  // namespace xccl
