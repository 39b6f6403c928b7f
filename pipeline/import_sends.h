// Sends that another synthesizer printed (interchange/traces/printed_sends.h) become a plan of XCCL: on a
// topology, proved, timed and lowered.
#pragma once

#include <string_view>

#include "base/status.h"
#include "interchange/traces/printed_sends.h"
#include "ir/collective.h"
#include "pipeline/plan_result.h"
#include "topologies/topology.h"

namespace xccl {

// The sends are an allgather. A reduce_scatter runs them backwards, and an allreduce runs them backwards and
// then forwards. A send takes the hop between its ranks, and the least loaded hop where several are parallel.
// `file` opens messages. Errors: kInvalidInput for another collective, sends that no hop carries, chunks that
// do not reach their sender, with their line, and ranks that miss a chunk; those of CompletePlan.
StatusOr<PlanResult> ImportSends(const PrintedSends& printed, std::string_view file, const Topology& topology,
                                 CollectiveKind kind, const PlanOptions& options);

}  // namespace xccl
