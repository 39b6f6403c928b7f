#include "pipeline/groups.h"

#include <chrono>
#include <utility>

namespace xccl {

StatusOr<GroupsResult> PlanGroupsTogether(const Topology& topology, GroupRequest request,
                                          const PlanOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  XCCL_ASSIGN_OR_RETURN(JointPlan plan, PlanGroups(topology, request,
                                                   {.engine = options.engine,
                                                    .model = options.request.model,
                                                    .seed = options.request.seed,
                                                    .allow_divergent = options.request.allow_divergent}));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  PlanOptions joint = options;
  joint.request.size_bytes = plan.joint.size_bytes;
  XCCL_ASSIGN_OR_RETURN(PlanResult result,
                        CompletePlan(topology, std::move(plan.made), plan.bound, seconds.count(), joint));
  return GroupsResult{std::move(request.groups), std::move(plan.groups), plan.unaware_ps, std::move(result)};
}

}  // namespace xccl
