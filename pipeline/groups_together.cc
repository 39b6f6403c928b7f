#include "pipeline/groups_together.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/pipeline.h"
#include "pipeline/search.h"

namespace xccl {

StatusOr<GroupsResult> PlanGroupsTogether(const Topology& topology, GroupRequest request,
                                          const PlanOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  XCCL_ASSIGN_OR_RETURN(JointPlan plan, PlanGroups(topology, request,
                                                   {.engine = options.engine,
                                                    .model = options.request.model,
                                                    .seed = options.request.seed,
                                                    .allow_divergent = options.request.allow_divergent,
                                                    .deadline = SearchDeadline(options)}));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  PlanOptions joint = options;
  joint.request.size_bytes = plan.joint.size_bytes;
  const std::vector<std::string> faults = std::exchange(plan.made.faults, {});
  std::vector<Synthesis> found = PlansOf(std::move(plan.made));
  XCCL_ASSIGN_OR_RETURN(PlanResult result, CompletePlan(topology, found, plan.bound, seconds.count(), joint));
  result.faults.insert(result.faults.begin(), faults.begin(), faults.end());
  return GroupsResult{std::move(request.groups), std::move(plan.groups), plan.unaware_ps, std::move(result)};
}

}  // namespace xccl
