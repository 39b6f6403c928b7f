#include "pipeline/training.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "ir/plan.h"
#include "ir/sizes.h"
#include "pipeline/pipeline.h"
#include "runtime/plan_book.h"
#include "synth/common/members_alone.h"
#include "topologies/submachine.h"

namespace xccl {
namespace {

// Makes a plan for the group alone, on its members' submachine; returns nullopt if the group needs relays.
StatusOr<std::optional<Plan>> CommunicatorPlan(const Topology& topology, const ProcessGroup& group,
                                               const PlanOptions& options) {
  const Submachine alone = MembersAlone(topology, group.collective.ranks());
  const Collective collective = RestrictTo(group.collective, alone);
  if (!CheckReachable(alone.topology, collective).ok()) return std::optional<Plan>();
  PlanOptions lowered = options;
  lowered.lower = true;
  lowered.request.size_bytes = group.size_bytes;
  XCCL_ASSIGN_OR_RETURN(PlanResult result, MakePlan(alone.topology, collective, lowered));
  return std::optional(std::move(result.plan));
}

std::string FileOf(const PlannedLine& line) {
  std::string name =
      fmt::format("{}-{}-{}.plan.json", ToString(line.parallelism), line.what, line.collective());
  std::ranges::replace(name, ' ', '-');
  return name;
}

// Sets the range of sizes of every entry. A size between two planned sizes gets the plan of the smaller one;
// a size below the least planned size gets the plan of the least.
void CloseRanges(std::vector<PlanBookEntry>& entries) {
  std::ranges::stable_sort(
      entries, {}, [](const PlanBookEntry& e) { return std::tuple(e.collective, e.ranks, e.min_bytes); });
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto same = [&](size_t other) {
      return other < entries.size() && entries[other].collective == entries[i].collective &&
             entries[other].ranks == entries[i].ranks;
    };
    if (same(i + 1)) entries[i].max_bytes = entries[i + 1].min_bytes - 1;
    if (i == 0 || !same(i - 1)) entries[i].min_bytes = 0;
  }
}

Status WriteBook(const Topology& topology, const PlanOptions& options, const std::string& directory,
                 TrainingPlan& plan) {
  std::vector<PlanBookEntry> entries;
  for (PlannedLine& line : plan.lines) {
    const ProcessGroup& group = line.groups().front();
    if (line.experts) {
      line.file = FileOf(line);
      XCCL_RETURN_IF_ERROR(dispatch::WriteExpertPlan(line.experts->plan, directory + "/" + line.file));
      continue;
    }
    XCCL_ASSIGN_OR_RETURN(const std::optional<Plan> made, CommunicatorPlan(topology, group, options));
    if (!made) continue;
    line.file = FileOf(line);
    XCCL_RETURN_IF_ERROR(WritePlan(*made, directory + "/" + line.file));
    PlanBookEntry entry;
    entry.file = line.file;
    entry.collective = group.collective.kind();
    entry.ranks = group.collective.num_members();
    entry.min_bytes = CollectiveSizes(group.collective, group.size_bytes).size_bytes();
    const bool listed = std::ranges::any_of(entries, [&](const PlanBookEntry& e) {
      return e.collective == entry.collective && e.ranks == entry.ranks && e.min_bytes == entry.min_bytes;
    });
    line.listed = !listed;
    if (line.listed) entries.push_back(std::move(entry));
  }
  CloseRanges(entries);
  return WritePlanBook({directory, std::move(entries)});
}

Status CheckStep(const PlannedLine& line) {
  if (line.time_ps() <= kPsPerDay / line.count) return OkStatus();
  return UsageError(fmt::format("--for {}: {} take {} times {}; at most 1 day a step is supported",
                                ToString(line.parallelism), line.what, line.count,
                                FormatDurationShort(line.time_ps())));
}

// Adds a line for dispatch and a line for combine, each with half of the calls of the line of
// experts. Rows go to experts in the forward pass and, as combine's gradients, in the backward pass.
// They come back equally often.
Status AddExpertLines(const Topology& topology, const TrainingLine& line, TrainingPlan& plan) {
  for (const dispatch::Call call : {dispatch::Call::kDispatch, dispatch::Call::kCombine}) {
    StatusOr<PlannedExperts> experts = PlanExpertsTogether(topology, line, plan.job, call);
    if (!experts.ok())
      return Annotate(experts.status(), fmt::format("{} {}", ToString(line.parallelism), line.what));
    plan.lines.push_back({line.parallelism, line.what, line.count / 2, std::nullopt, *std::move(experts)});
    XCCL_RETURN_IF_ERROR(CheckStep(plan.lines.back()));
  }
  return OkStatus();
}

}  // namespace

std::string PlannedLine::collective() const {
  return experts ? std::string(dispatch::ToString(experts->plan.call)) : groups().front().collective.name();
}

StatusOr<TrainingPlan> PlanTraining(const Topology& topology, const TrainingJob& job,
                                    const PlanOptions& options, const std::string& book) {
  if (!book.empty()) XCCL_RETURN_IF_ERROR(MakePlanBookDirectory(book));  // before long searches
  TrainingPlan plan{topology.name(), job, {}, {}};
  XCCL_ASSIGN_OR_RETURN(plan.layout, LayoutOf(job, topology.num_ranks()));
  XCCL_ASSIGN_OR_RETURN(std::vector<TrainingLine> lines, TrainingLines(job, topology.num_ranks()));
  PlanOptions only_planned = options;
  only_planned.lower = false;
  for (TrainingLine& line : lines) {
    if (line.parallelism == Parallelism::kEp && FitsExpertPlan(line, job)) {
      XCCL_RETURN_IF_ERROR(AddExpertLines(topology, line, plan));
      continue;
    }
    StatusOr<GroupsResult> groups = PlanGroupsTogether(topology, std::move(line.request), only_planned);
    if (!groups.ok())
      return Annotate(groups.status(), fmt::format("{} {}", ToString(line.parallelism), line.what));
    plan.lines.push_back({line.parallelism, line.what, line.count, *std::move(groups), std::nullopt});
    XCCL_RETURN_IF_ERROR(CheckStep(plan.lines.back()));
  }
  if (!book.empty()) XCCL_RETURN_IF_ERROR(WriteBook(topology, options, book, plan));
  return plan;
}

}  // namespace xccl
