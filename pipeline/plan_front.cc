#include "pipeline/plan_front.h"

#include "ir/bounds/bound.h"
#include "pipeline/search.h"
#include "synth/engines.h"

namespace xccl {

StatusOr<smt::Front> PlanFront(const Topology& topology, const Collective& collective,
                               const PlanOptions& options) {
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  SynthesisRequest request = RequestOf(topology, collective, options, nullptr);
  request.limits.deadline = options.deadline;  // no program is made, and nothing is simulated afterwards
  return smt::FindFront(request, AllEngines());
}

}  // namespace xccl
