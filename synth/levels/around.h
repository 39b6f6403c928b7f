// Leads a compressed plan of a whole machine around the links and hosts that a damaged machine lacks. A link
// is damaged if it is lost or slow.
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

// Returns the translations of a whole machine, which also move switches (TurnSwitches). The search
// runs on the nodes in the order of InOrder, because it finds more translations there. Requires:
// MakeWhole returned the machine.
SymmetryGroup TranslationsOfWhole(const Topology& whole, const MissingLinks& missing);

// Turns a schedule of the whole machine into a schedule of the damaged machine, by adding detours. Takes the
// detours that load links least; a path stays on a slow link unless a detour is faster. Where the columns
// have no path for an heir of a lost rank, adds a way. `collective` is that of the damaged machine. Errors:
// kInvalidInput "ENGINE: ..." if two ranks reach each other only through other GPUs, or if lost ranks would
// pass on what other hosts send to each other in an alltoall; those of WholeOf and of Translations::Create.
// Cost: near linear in the translates whose paths pass damaged links and in what heirs take over, and a
// search of the links around each damaged link.
Status LeadAround(Schedule& schedule, const MissingLinks& missing, const Topology& machine,
                  const Topology& whole, const SymmetryGroup& group, const Collective& collective,
                  int64_t size_bytes, std::string_view engine);

}  // namespace xccl
