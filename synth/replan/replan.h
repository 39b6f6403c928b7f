// A plan for a machine that has changed, from the plan for the machine as it was: what went over lost links
// or lost ranks is joined anew, busy links are relieved, everything else stays. Much faster than planning
// from nothing, and running plans change little.
#pragma once

#include "base/status.h"
#include "ir/plan.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// The engine that its plans name.
inline constexpr const char* kReplan = "replan";

// Nodes are matched by host and id, links by their ends and their order among parallel ones. The request's
// collective is that of the plan, all members or those that are left. `note` says what was kept and changed.
// Requires: the plan verifies; CheckReachable(request). Errors: kInvalidInput where the plan is for another
// collective, or its chunks do not move in trees (ranks that exchange partial sums; switches that multicast);
// kLimit where it is too large (synth/replan/trees.h). Cost: linear in the plan's edges, ranks × chunks, and
// the request's work units (0: a few searches an edge).
StatusOr<Synthesis> Replan(const Plan& plan, const SynthesisRequest& request);

}  // namespace xccl
