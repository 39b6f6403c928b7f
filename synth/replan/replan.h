// Repairs a plan for a machine that has changed. Edges over lost links or ranks are joined anew, busy links
// are relieved, and everything else stays as in the plan. A repair is much faster than planning from nothing,
// and running plans change little.
#pragma once

#include "base/status.h"
#include "ir/plan.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// The engine name in repaired plans.
inline constexpr const char* kReplan = "replan";

// Returns the plan for request.topology. Nodes are matched by host and id; links are matched by their ends
// and by their order among parallel links. The request's collective is the plan's collective, with all or
// some of its members; a user-defined collective needs all. `note` says what was kept and what changed.
// Requires: the plan verifies; CheckReachable(request). Errors: kInvalidInput if the plan is for another
// collective, if it has more than kMostParts parts, or if its chunks do not move in trees (ranks that
// exchange partial sums; switches that multicast); kLimit if the plan is too large (synth/replan/trees.h).
// Cost: linear in the plan's edges, ranks × chunks, and the request's work units (0: a few searches for each
// edge).
StatusOr<Synthesis> Replan(const Plan& plan, const SynthesisRequest& request);

}  // namespace xccl
