#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/show.h"
#include "pipeline/training.h"

namespace xccl {
namespace {

int64_t StepPs(const TrainingPlan& plan) {
  int64_t sum = 0;
  for (const PlannedLine& line : plan.lines) sum += line.step_ps();
  return sum;
}

double Share(const PlannedLine& line, int64_t step_ps) {
  return step_ps > 0 ? static_cast<double>(line.step_ps()) / static_cast<double>(step_ps) : 0;
}

// The busbw of one group while all run.
double BusBandwidth(const PlannedLine& line) { return BusBandwidth(line.groups().front(), line.time_ps()); }

std::string EngineOf(const PlannedLine& line) {
  if (line.experts) return "experts";
  std::string engine = line.together->outcomes.front().engine;
  for (const GroupOutcome& outcome : line.together->outcomes)
    if (outcome.engine != engine) return engine + " and others";
  return engine;
}

}  // namespace

std::string TrainingText(const TrainingPlan& plan, const Ended& ended) {
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
    const ProcessGroup& group = line.groups().front();
    table.push_back({std::string(ToString(line.parallelism)), line.what, line.collective(),
                     fmt::format("{} x {}", line.groups().size(), group.collective.num_members()),
                     FormatSizeShort(group.size_bytes), fmt::format("{}", line.count), EngineOf(line),
                     fmt::format("{:.1f}", PsToUs(line.time_ps())),
                     fmt::format("{:.1f}", PsToUs(line.bound_ps())), fmt::format("{:.3f}", line.ratio()),
                     fmt::format("{:.1f}", GbPerS(BusBandwidth(line))),
                     fmt::format("{:.2f}", PsToUs(line.step_ps()) / 1e3),
                     fmt::format("{:.1f}", 100 * Share(line, step_ps))});
  }
  if (plan.lines.empty()) return text + "nothing to communicate: all groups are of one rank\n";
  text += TableText(table);
  text += fmt::format("communication of a step, one after the other, on {}\nplanned in {:.3g} s\n",
                      OnIdealLinks(step_ps), ended.total_s);
  if (!ended.file.empty()) {
    const auto written =
        std::ranges::count_if(plan.lines, [](const PlannedLine& l) { return !l.file.empty(); });
    const auto listed = std::ranges::count_if(plan.lines, &PlannedLine::listed);
    text += fmt::format("book: {}, {}, {} in its index\n", ended.file, Counted(written, "plan"), listed);
  }
  return text;
}

std::string TrainingJson(const TrainingPlan& plan, double total_s) {
  const int64_t step_ps = StepPs(plan);
  std::vector<Row> rows;
  for (const PlannedLine& line : plan.lines) {
    const ProcessGroup& group = line.groups().front();
    rows.push_back({{"for", std::string(ToString(line.parallelism))},
                    {"what", line.what},
                    {"collective", line.collective()},
                    {"groups", static_cast<int64_t>(line.groups().size())},
                    {"ranks", int64_t{group.collective.num_members()}},
                    {"size_bytes", group.size_bytes},
                    {"count", line.count},
                    {"engine", EngineOf(line)},
                    {"time_us", PsToUs(line.time_ps())},
                    {"bound_us", PsToUs(line.bound_ps())},
                    {"ratio", line.ratio()},
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
                 {"step_us", PsToUs(step_ps)},
                 {"total_s", total_s}},
                "lines", rows);
}

}  // namespace xccl
