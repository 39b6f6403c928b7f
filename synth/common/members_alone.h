// A collective of some ranks of a machine, planned as if there were no others (topologies/submachine.h). It
// gives the collective on the submachine, and turns a plan made there into one on the whole machine.
#pragma once

#include <functional>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/common/synthesizer.h"
#include "topologies/submachine.h"

namespace xccl {

// The collective on the submachine of exactly these members. Linear in the collective's tables.
Collective OnMembersAlone(const Collective& whole, const Submachine& alone);

// The same chunks, transfers and claims, in the numbers of the whole machine; plain. `exact` and the
// simulation are kept, since the time is the same there. The caller must judge whether another plan is faster
// with the help of the other ranks. Errors: kLimit where the plain form has more than 4 million transfers.
StatusOr<Synthesis> OnWholeMachine(Synthesis made, const Submachine& alone, const Collective& whole);

// The schedule with ranks and links renamed. Requires: a plain schedule; different ranks and links get
// different names.
Schedule Renumber(const Schedule& plain, const std::function<Rank(Rank)>& rank,
                  const std::function<LinkId(LinkId)>& link);

}  // namespace xccl
