// Plans for some ranks of a machine, made on the submachine of the ranks (topologies/submachine.h).
// RestrictTo moves a collective from the whole machine to the submachine. OnWholeMachine moves a plan from
// the submachine to the whole machine.
#pragma once

#include <functional>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/common/synthesizer.h"
#include "topologies/submachine.h"

namespace xccl {

// Returns the collective with the rank numbers of the submachine. Requires that the ranks of the submachine
// are exactly the members. Linear in the collective's tables.
Collective RestrictTo(const Collective& whole, const Submachine& alone);

// Returns the plan with the whole machine's numbers of ranks and links, in plain form. Keeps `exact` and the
// simulation, because the plan takes the same time on the whole machine. A plan that also uses other ranks
// may be faster, so the caller must judge whether `exact` still holds. Errors: kLimit if the plain form has
// more than kMostTransfers transfers.
StatusOr<Synthesis> OnWholeMachine(Synthesis made, const Submachine& alone, const Collective& whole);

// Returns the schedule with ranks and links renamed by the two functions. Requires a plain schedule, and that
// different ranks and links get different names.
Schedule Renumber(const Schedule& plain, const std::function<Rank(Rank)>& rank,
                  const std::function<LinkId(LinkId)>& link);

}  // namespace xccl
