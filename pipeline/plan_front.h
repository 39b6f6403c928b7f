// Plans the front between fewest steps and fewest rounds. Proves each schedule unless a limit is reached.
#pragma once

#include "base/status.h"
#include "ir/collective.h"
#include "pipeline/plan_result.h"
#include "synth/smt/pareto.h"
#include "topologies/topology.h"

namespace xccl {

// Returns the front of schedules by steps (latency) and rounds (bandwidth), proved by the engine smt. Errors:
// those of CheckReachable and smt::FindFront.
StatusOr<smt::Front> PlanFront(const Topology& topology, const Collective& collective,
                               const PlanOptions& options);

}  // namespace xccl
