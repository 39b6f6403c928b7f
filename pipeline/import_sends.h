// Makes a plan of XCCL from the sends that another synthesizer printed (interchange/traces/printed_sends.h).
// The plan is for a given topology. It is proved and timed, and lowered if options.lower is set.
#pragma once

#include <string_view>

#include "base/status.h"
#include "interchange/traces/printed_sends.h"
#include "ir/collective.h"
#include "pipeline/plan_result.h"
#include "topologies/topology.h"

namespace xccl {

// Makes a plan from the sends, which form an allgather. A reduce_scatter runs the sends backwards. An
// allreduce runs them backwards and then forwards. A send uses the path between its two ranks; if there are
// parallel paths, it uses the least loaded one. Error messages begin with `file`. Errors: those of
// PlanOfSchedule; kInvalidInput for another collective or number of ranks, a send without a path, a chunk
// that does not reach its sender, or a rank that misses a chunk.
StatusOr<PlanResult> ImportSends(const PrintedSends& printed, std::string_view file, const Topology& topology,
                                 CollectiveKind kind, const PlanOptions& options);

}  // namespace xccl
