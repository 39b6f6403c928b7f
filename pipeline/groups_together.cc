#include "pipeline/groups_together.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "ir/verify/verify_schedule.h"
#include "pipeline/pipeline.h"
#include "pipeline/search.h"
#include "synth/groups/apart.h"
#include "synth/groups/member_plans.h"

namespace xccl {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

StatusOr<GroupsResult> Together(const Topology& topology, GroupRequest request, JointPlan plan,
                                Clock::time_point began, const PlanOptions& options) {
  const double seconds = SecondsSince(began);
  PlanOptions joint = options;
  joint.request.size_bytes = plan.joint.size_bytes;
  const std::vector<std::string> faults = std::exchange(plan.made.faults, {});
  std::vector<Synthesis> found = PlansOf(std::move(plan.made));
  XCCL_ASSIGN_OR_RETURN(PlanResult result, CompletePlan(topology, found, plan.bound, seconds, joint));
  result.faults.insert(result.faults.begin(), faults.begin(), faults.end());
  return GroupsResult{std::move(request.name), std::move(request.groups), std::move(plan.groups),
                      plan.unaware_ps, std::move(result)};
}

StatusOr<GroupsResult> Apart(const Topology& topology, GroupRequest request, MemberPlans& plans,
                             Clock::time_point began, const PlanOptions& options) {
  XCCL_ASSIGN_OR_RETURN(ApartPlan plan, PlanApart(topology, request.groups, options.request.model, plans));
  const double seconds = SecondsSince(began);
  for (size_t k = 0; k < plan.kinds.size(); ++k) {
    const auto& [alone, made] = *plan.kinds[k].plan;
    if (k == plan.slowest) continue;  // CompletePlan proves the plan of this kind
    XCCL_RETURN_IF_ERROR(
        CheckProved(VerifySchedule(made.schedule, made.collective, alone.topology), made.engine));
  }
  const LonePlan& slowest = *plan.kinds[plan.slowest].plan;
  PlanOptions alone = options;
  alone.lower = false;
  alone.request.size_bytes = request.groups[plan.kinds[plan.slowest].first].size_bytes;
  std::vector<Synthesis> found = {slowest.made};
  found.front().exact = MeetsBound(plan.time_ps, plan.bound);
  XCCL_ASSIGN_OR_RETURN(PlanResult result,
                        CompletePlan(slowest.alone.topology, found, plan.bound, seconds, alone));
  result.simulation.time_ps = plan.time_ps;
  result.ratio = RatioOf(plan.time_ps, plan.bound.bound_ps);
  result.faults = plans.faults();
  return GroupsResult{std::move(request.name), std::move(request.groups), std::move(plan.groups),
                      plan.unaware_ps,         std::move(result),         plan.kinds.size()};
}

}  // namespace

StatusOr<GroupsResult> PlanGroupsTogether(const Topology& topology, GroupRequest request,
                                          const PlanOptions& options, bool needs_one_plan) {
  const Clock::time_point began = Clock::now();
  const MemberPlanOptions member_options{.engine = options.engine,
                                         .model = options.request.model,
                                         .seed = options.request.seed,
                                         .allow_divergent = options.request.allow_divergent,
                                         .deadline = SearchDeadline(options)};
  MemberPlans plans(topology, request.groups, member_options);
  StatusOr<JointPlan> joint = PlanGroups(topology, request, member_options, plans);
  if (joint.ok()) return Together(topology, std::move(request), *std::move(joint), began, options);
  if (needs_one_plan || joint.status().code() != StatusCode::kLimit) return joint.status();
  return Apart(topology, std::move(request), plans, began, options);
}

}  // namespace xccl
