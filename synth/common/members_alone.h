// Plans for some ranks of a machine, made on the submachine of these ranks (topologies/submachine.h). Turns a
// collective on the whole machine into one on the submachine, and a plan made there into one on the machine.
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
Collective RestrictTo(const Collective& whole, const Submachine& alone);

// The plan with the whole machine's numbers of ranks and links, in plain form. `exact` and the simulation are
// kept, since the plan takes as long there. The caller must judge whether a plan that uses the other ranks is
// faster. Errors: kLimit where the plain form has more than kMostTransfers transfers.
StatusOr<Synthesis> OnWholeMachine(Synthesis made, const Submachine& alone, const Collective& whole);

// The schedule with ranks and links renamed. Requires: a plain schedule; different ranks and links get
// different names.
Schedule Renumber(const Schedule& plain, const std::function<Rank(Rank)>& rank,
                  const std::function<LinkId(LinkId)>& link);

}  // namespace xccl
