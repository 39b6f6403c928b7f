// What another synthesizer printed as sends (interchange/traces/printed_sends.h), as a plan of ours: on a
// topology, proved, timed and lowered.
#pragma once

#include <string_view>

#include "base/status.h"
#include "interchange/traces/printed_sends.h"
#include "ir/collective.h"
#include "pipeline/pipeline.h"
#include "topologies/topology.h"

namespace xccl {

// The sends are an allgather; a reduce_scatter is the same backwards, and an allreduce both. A send takes the
// hop between its ranks, of parallel ones the least loaded. `file` opens messages. Errors: kInvalidInput for
// another collective, sends that no hop carries, chunks that do not reach their sender, with their line, and
// ranks that miss a chunk; those of CompletePlan.
StatusOr<PlanResult> ImportSends(const PrintedSends& printed, std::string_view file, const Topology& topology,
                                 CollectiveKind kind, const PlanOptions& options);

}  // namespace xccl
