#include "pipeline/training_experts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/random.h"
#include "base/units.h"
#include "dispatch/bound.h"
#include "dispatch/domains.h"
#include "dispatch/make_plan.h"
#include "dispatch/predict.h"
#include "dispatch/routing.h"
#include "topologies/submachine.h"

namespace xccl {
namespace {

using dispatch::Call;
using dispatch::ExpertPlan;

constexpr int32_t kDraws = 5;  // number of drawn routings; the median of their times counts

dispatch::Sizes SizesOf(const TrainingLine& line, const TrainingJob& job) {
  const ProcessGroup& group = line.request.groups.front();
  const int64_t row_bytes = job.model.hidden * job.bytes;
  const auto number = [](int64_t value) { return static_cast<int32_t>(std::min<int64_t>(value, 1 << 30)); };
  return {.ranks = group.collective.num_members(),
          .experts = number(job.model.experts),
          .top_k = number(job.model.top_k),
          .max_tokens = number(group.size_bytes / (row_bytes * job.model.top_k)),
          .row_bytes = row_bytes};
}

// Returns whether the machines have equal links, and nodes of equal kinds on the same hosts.
bool Alike(const Topology& a, const Topology& b) {
  return a.spec().links == b.spec().links &&
         std::ranges::equal(a.spec().nodes, b.spec().nodes, [](const Node& one, const Node& other) {
           return one.kind == other.kind && one.host == other.host;
         });
}

struct Member {
  Submachine alone;
  size_t plan = 0;  // index of the plan of its kind
};

// Returns how long the rows of a draw keep each link of the plan's machine busy, by link.
std::vector<int64_t> LoadOf(const ExpertPlan& plan, const std::vector<int64_t>& rows, Call call) {
  std::vector<int64_t> load(plan.topology.num_links());
  const int64_t bytes = plan.sizes.row_bytes + dispatch::HeaderBytes(plan.sizes, call);
  for (size_t h = 0; h < plan.hops.size(); ++h)
    for (const LinkId l : call == Call::kDispatch ? plan.hops[h].links : plan.hops[h].back)
      load[l.index()] += TransferPs(rows[h] * bytes, plan.topology.link(l).bandwidth_bytes_per_s);
  return load;
}

// Returns the plan with every link's bandwidth cut to its group's share: the group's load (`own`) ÷ the load
// of all groups (`all`).
StatusOr<ExpertPlan> Narrowed(ExpertPlan plan, const Submachine& alone, const std::vector<int64_t>& own,
                              const std::vector<int64_t>& all) {
  TopologySpec spec = plan.topology.spec();
  for (size_t l = 0; l < own.size(); ++l) {
    const int64_t total = all[alone.link[l].index()];
    if (own[l] == 0 || total == own[l]) continue;
    int64_t& width = spec.links[l].bandwidth_bytes_per_s;
    width =
        std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(width) * static_cast<double>(own[l]) /
                                                  static_cast<double>(total)));
  }
  XCCL_ASSIGN_OR_RETURN(plan.topology, Topology::Create(std::move(spec)));
  return plan;
}

}  // namespace

bool FitsExpertPlan(const TrainingLine& line, const TrainingJob& job) {
  const int64_t row_bytes = job.model.hidden * job.bytes;
  return row_bytes > 0 && job.model.top_k > 0 && dispatch::CheckSizes(SizesOf(line, job)).ok();
}

StatusOr<PlannedExperts> PlanExpertsTogether(const Topology& topology, const TrainingLine& line,
                                             const TrainingJob& job, Call call) {
  dispatch::PlanRequest request{.call = call, .sizes = SizesOf(line, job), .routing = {}};
  std::vector<ExpertPlan> plans;  // by kind
  std::vector<size_t> first;      // by kind: index of its first member
  std::vector<Member> members;
  for (const ProcessGroup& group : line.request.groups) {
    Member member{.alone = MembersAlone(topology, group.collective.ranks())};
    const auto known = std::ranges::find_if(
        first, [&](size_t m) { return Alike(members[m].alone.topology, member.alone.topology); });
    member.plan = static_cast<size_t>(known - first.begin());
    if (known == first.end()) {
      XCCL_ASSIGN_OR_RETURN(ExpertPlan plan, dispatch::MakeExpertPlan(member.alone.topology, request));
      plans.push_back(std::move(plan));
      first.push_back(members.size());
    }
    members.push_back(std::move(member));
  }
  const dispatch::Bound bound(plans[0].topology, dispatch::FindDomains(plans[0].topology), request.sizes,
                              call);
  std::vector<dispatch::HopIndex> indexes(plans.begin(), plans.end());
  Random random(request.seed + 1);
  std::vector<int64_t> times, bounds;
  for (int32_t i = 0; i < kDraws; ++i) {
    const dispatch::Needs draw =
        dispatch::NeedsOf(dispatch::DrawRouting(request.routing, request.sizes, random), request.sizes);
    bounds.push_back(bound.TimePs(draw));
    std::vector<std::vector<int64_t>> rows, loads;  // by kind
    for (size_t p = 0; p < plans.size(); ++p) {
      rows.push_back(dispatch::RowsOfHops(plans[p], indexes[p], draw, call));
      loads.push_back(LoadOf(plans[p], rows[p], call));
    }
    std::vector<int64_t> all(topology.num_links());
    for (const Member& member : members)
      for (size_t l = 0; l < member.alone.link.size(); ++l)
        all[member.alone.link[l].index()] += loads[member.plan][l];
    int64_t slowest = 0;
    for (const Member& member : members) {
      XCCL_ASSIGN_OR_RETURN(const ExpertPlan narrowed,
                            Narrowed(plans[member.plan], member.alone, loads[member.plan], all));
      slowest = std::max(slowest, dispatch::Predictor(narrowed, call).TimePs(rows[member.plan]));
    }
    times.push_back(slowest);
  }
  return PlannedExperts{.groups = line.request.groups,
                        .plan = std::move(plans[0]),
                        .time_ps = dispatch::Quantile(times, 0.5),
                        .bound_ps = dispatch::Quantile(bounds, 0.5)};
}

}  // namespace xccl
