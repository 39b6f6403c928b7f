// Every point between fewest steps and fewest rounds, each with a proof.
#pragma once

#include "base/status.h"
#include "ir/collective.h"
#include "pipeline/plan_result.h"
#include "synth/smt/pareto.h"
#include "topologies/topology.h"

namespace xccl {

// The front between latency and bandwidth, proved by smt. Errors: those of CheckReachable and smt::FindFront.
StatusOr<smt::Front> PlanFront(const Topology& topology, const Collective& collective,
                               const PlanOptions& options);

}  // namespace xccl
