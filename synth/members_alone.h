// A collective of some ranks of a machine, planned as if there were no others (topologies/submachine.h): the
// collective there, and what a plan made there is on the whole machine.
#pragma once

#include "base/status.h"
#include "ir/collective.h"
#include "synth/synthesizer.h"
#include "topologies/submachine.h"
#include "topologies/topology.h"

namespace xccl {

// Ranks take part on the submachine of exactly these members. Linear in the collective's tables.
Collective OnMembersAlone(const Collective& whole, const Submachine& alone);

// The same chunks, transfers and claims, in the numbers of the whole machine; plain. `exact` and the
// simulation are kept: time is the same there, but whether another plan is faster with the help of the other
// ranks is for the caller to say. Errors: kLimit where the plain form has more than 4 million transfers.
StatusOr<Synthesis> OnWholeMachine(Synthesis made, const Submachine& alone, const Collective& whole);

}  // namespace xccl
