#include "cli/training_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "base/units.h"
#include "cli/output_json.h"
#include "cli/show.h"
#include "ir/plan.h"
#include "ir/sizes.h"
#include "runtime/plan_book.h"
#include "synth/common/members_alone.h"
#include "topologies/submachine.h"

namespace xccl {
namespace {

constexpr int64_t kMostStepPs = 86'400 * kPsPerSecond;  // what bounds allow single collectives

Status MakeFolder(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return InvalidInput(directory + ": cannot make the directory: " + error.message());
  return CheckWritable(directory + "/index.json");
}

// The group's plan as a communicator of its own; absent where it needs relays.
StatusOr<std::optional<Plan>> CommunicatorPlan(const Topology& topology, const ProcessGroup& group,
                                               const PipelineOptions& options) {
  const Submachine alone = MembersAlone(topology, group.collective.ranks());
  const Collective collective = OnMembersAlone(group.collective, alone);
  if (!CheckReachable(alone.topology, collective).ok()) return std::optional<Plan>();
  PipelineOptions lowered = options;
  lowered.lower = true;
  lowered.size_bytes = group.size_bytes;
  XCCL_ASSIGN_OR_RETURN(PipelineResult result, RunPipeline(alone.topology, collective, lowered));
  return std::optional(std::move(result.plan));
}

std::string FileOf(const PlannedLine& line) {
  std::string name = fmt::format("{}-{}-{}.plan.json", ToString(line.parallelism), line.what,
                                 line.groups.groups.front().collective.name());
  std::ranges::replace(name, ' ', '-');
  return name;
}

// Sizes between those that were planned are served by the plan of the next smaller one.
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

Status WriteBook(const Topology& topology, const PipelineOptions& options, const std::string& directory,
                 TrainingPlan& plan) {
  std::vector<PlanBookEntry> entries;
  for (PlannedLine& line : plan.lines) {
    const ProcessGroup& group = line.groups.groups.front();
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

int64_t StepPs(const TrainingPlan& plan) {
  int64_t sum = 0;
  for (const PlannedLine& line : plan.lines) sum += line.step_ps();
  return sum;
}

double Share(const PlannedLine& line, int64_t step_ps) {
  return step_ps > 0 ? static_cast<double>(line.step_ps()) / static_cast<double>(step_ps) : 0;
}

// Of one group while all run.
double BusBandwidth(const PlannedLine& line) {
  const ProcessGroup& group = line.groups.groups.front();
  const int64_t ps = line.groups.result.simulation.time_ps;
  if (ps <= 0) return 0;
  return static_cast<double>(CollectiveSizes(group.collective, group.size_bytes).size_bytes()) * 1e12 /
         static_cast<double>(ps) * BusFactor(group.collective.kind(), group.collective.num_members());
}

std::string EngineOf(const PlannedLine& line) {
  std::string engine = line.groups.outcomes.front().engine;
  for (const GroupOutcome& outcome : line.groups.outcomes)
    if (outcome.engine != engine) return engine + " and others";
  return engine;
}

}  // namespace

StatusOr<TrainingPlan> PlanTraining(const Topology& topology, const TrainingJob& job,
                                    const PipelineOptions& options, const std::string& book) {
  if (!book.empty()) XCCL_RETURN_IF_ERROR(MakeFolder(book));  // before long searches
  TrainingPlan plan{topology.name(), job, {}, {}};
  XCCL_ASSIGN_OR_RETURN(plan.layout, LayoutOf(job, topology.num_ranks()));
  XCCL_ASSIGN_OR_RETURN(std::vector<TrainingLine> lines, TrainingLines(job, topology.num_ranks()));
  PipelineOptions only_planned = options;
  only_planned.lower = false;
  for (TrainingLine& line : lines) {
    StatusOr<GroupsResult> groups = RunGroups(topology, std::move(line.request), only_planned);
    if (!groups.ok())
      return Annotate(groups.status(), fmt::format("{} {}", ToString(line.parallelism), line.what));
    const int64_t time_ps = groups->result.simulation.time_ps;
    if (time_ps > kMostStepPs / line.count)
      return UsageError(fmt::format("--for {}: {} take {} times {}; at most 1 day a step is supported",
                                    ToString(line.parallelism), line.what, line.count,
                                    FormatDurationShort(time_ps)));
    plan.lines.push_back({line.parallelism, line.what, line.count, *std::move(groups), "", false});
  }
  if (!book.empty()) XCCL_RETURN_IF_ERROR(WriteBook(topology, options, book, plan));
  return plan;
}

std::string TrainingText(const TrainingPlan& plan, const std::string& book) {
  const Layout& layout = plan.layout;
  const ParameterCount parameters = CountParameters(plan.job.model);
  std::string text =
      fmt::format("{} on {}: {:.1f} billion parameters, tp {}{} dp {}{} pp {}\n", plan.job.model.name,
                  plan.topology, static_cast<double>(parameters.total()) / 1e9, layout.tp,
                  layout.ulysses > 1 ? fmt::format(" ulysses {}", layout.ulysses) : "", layout.dp,
                  layout.ep > 1 ? fmt::format(" (ep {})", layout.ep) : "", layout.pp);
  const int64_t step_ps = StepPs(plan);
  std::vector<std::vector<std::string>> table = {{"for", "what", "collective", "groups", "size", "a step",
                                                  "engine", "time us", "bound us", "ratio", "busbw GB/s",
                                                  "step ms", "share %"}};
  for (const PlannedLine& line : plan.lines) {
    const PipelineResult& result = line.groups.result;
    const ProcessGroup& group = line.groups.groups.front();
    table.push_back({std::string(ToString(line.parallelism)), line.what, group.collective.name(),
                     fmt::format("{} x {}", line.groups.groups.size(), group.collective.num_members()),
                     FormatSizeShort(group.size_bytes), fmt::format("{}", line.count), EngineOf(line),
                     fmt::format("{:.1f}", PsToUs(result.simulation.time_ps)),
                     fmt::format("{:.1f}", PsToUs(result.bound.bound_ps)),
                     fmt::format("{:.3f}", result.ratio), fmt::format("{:.1f}", GbPerS(BusBandwidth(line))),
                     fmt::format("{:.2f}", PsToUs(line.step_ps()) / 1e3),
                     fmt::format("{:.1f}", 100 * Share(line, step_ps))});
  }
  if (plan.lines.empty()) return text + "nothing to communicate: all groups are of one rank\n";
  text += TableText(table);
  text += fmt::format("communication of a step, one after the other: {}\n", FormatDurationShort(step_ps));
  if (!book.empty()) {
    const auto written =
        std::ranges::count_if(plan.lines, [](const PlannedLine& l) { return !l.file.empty(); });
    const auto listed = std::ranges::count_if(plan.lines, &PlannedLine::listed);
    text += fmt::format("book: {}, {} plans, {} in its index\n", book, written, listed);
  }
  return text;
}

std::string TrainingJson(const TrainingPlan& plan) {
  const int64_t step_ps = StepPs(plan);
  std::vector<Row> rows;
  for (const PlannedLine& line : plan.lines) {
    const PipelineResult& result = line.groups.result;
    const ProcessGroup& group = line.groups.groups.front();
    rows.push_back({{"for", std::string(ToString(line.parallelism))},
                    {"what", line.what},
                    {"collective", group.collective.name()},
                    {"groups", static_cast<int64_t>(line.groups.groups.size())},
                    {"ranks", int64_t{group.collective.num_members()}},
                    {"size_bytes", group.size_bytes},
                    {"count", line.count},
                    {"engine", EngineOf(line)},
                    {"time_us", PsToUs(result.simulation.time_ps)},
                    {"bound_us", PsToUs(result.bound.bound_ps)},
                    {"ratio", result.ratio},
                    {"busbw_gb_per_s", GbPerS(BusBandwidth(line))},
                    {"step_us", PsToUs(line.step_ps())},
                    {"share", Share(line, step_ps)},
                    {"file", line.file.empty() ? Cell() : Cell(line.file)}});
  }
  return ToJson({{"model", plan.job.model.name},
                 {"params", CountParameters(plan.job.model).total()},
                 {"tp", plan.layout.tp},
                 {"ulysses", plan.layout.ulysses},
                 {"dp", plan.layout.dp},
                 {"ep", plan.layout.ep},
                 {"pp", plan.layout.pp},
                 {"step_us", PsToUs(step_ps)}},
                "lines", rows);
}

}  // namespace xccl
