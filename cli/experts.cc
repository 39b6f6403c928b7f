#include "cli/experts.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_kinds.h"
#include "base/files.h"
#include "base/random.h"
#include "base/strings.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "dispatch/bound.h"
#include "dispatch/domains.h"
#include "dispatch/make_plan.h"
#include "dispatch/predict.h"
#include "dispatch/simulate.h"
#include "dispatch/verify.h"
#include "runtime/experts/measure.h"

namespace xccl {
namespace {

using dispatch::Call;
using dispatch::DrawTimes;
using dispatch::ExpertPlan;

// The work of most published tables: DeepSeek-V3's experts, rows of 7,168 fp8 values with 56 scales, and the
// same row as bfloat16 on the way back.
constexpr int32_t kExperts = 256, kTopK = 8, kTokens = 4096;
constexpr const char *kRowOfDispatch = "7392B", *kRowOfCombine = "14336B";

constexpr std::array<std::string_view, 5> kFlags = {"--tokens", "--row", "--routing", "--aim", "--draws"};
// Flags of plan that mean nothing for routes of experts.
constexpr std::array<const char*, 23> kOthers = {
    "--root",   "--ranks",   "--counts", "--pairs",           "--no-relays",    "--collective-file",
    "--groups", "--engine",  "--size",   "--chunks",          "--steps",        "--rounds",
    "--model",  "--from",    "--pareto", "--place",           "--max-ctas",     "--explain",
    "--lower",  "--machine", "--for",    "--allow-divergent", "--verify-passes"};

StatusOr<dispatch::PlanRequest> RequestOf(const Topology& topology, const std::string& collective,
                                          const ExpertFlags& flags, const TrainingFlags& numbers,
                                          uint64_t seed) {
  dispatch::PlanRequest request;
  request.call = collective == "combine" ? Call::kCombine : Call::kDispatch;
  request.seed = seed;
  const std::string row = flags.row.value_or(request.call == Call::kCombine ? kRowOfCombine : kRowOfDispatch);
  XCCL_ASSIGN_OR_RETURN(const int64_t row_bytes, FlagValue("--row", ParseSize(row)));
  // A number beyond the limit is refused as the limit's next is.
  const auto number = [&](const char* flag, int32_t otherwise, int32_t most) {
    return static_cast<int32_t>(
        std::min<int64_t>(NumberOf(numbers, flag).value_or(otherwise), int64_t{most} + 1));
  };
  request.sizes = {.ranks = topology.num_ranks(),
                   .experts = number("--experts", kExperts, dispatch::kMostExperts),
                   .top_k = number("--top-k", kTopK, dispatch::kMostTopK),
                   .max_tokens = flags.tokens.value_or(kTokens),
                   .row_bytes = row_bytes};
  if (const Status fits = dispatch::CheckSizes(request.sizes); !fits.ok()) return UsageError(fits.message());
  if (flags.aim) {
    XCCL_ASSIGN_OR_RETURN(request.aim, FlagValue("--aim", dispatch::ParseAim(*flags.aim)));
  }
  const std::string routing = flags.routing.value_or("uniform");
  XCCL_ASSIGN_OR_RETURN(request.routing, dispatch::ReadRoutingSource(routing, request.sizes));
  return request;
}

double Of(const std::vector<DrawTimes>& draws, double share, auto value) {
  std::vector<double> values;
  for (const DrawTimes& draw : draws) values.push_back(value(draw));
  return dispatch::Quantile(values, share);
}

struct Summary {
  double time_median_us, time_p99_us, bound_median_us, ratio_median, ratio_p99, deepep_us, pairwise_us,
      padded_us;
};

Summary SummaryOf(const std::vector<DrawTimes>& draws) {
  const auto us = [&](int64_t DrawTimes::*time, double share = 0.5) {
    return Of(draws, share, [&](const DrawTimes& draw) { return PsToUs(draw.*time); });
  };
  const auto ratio = [](const DrawTimes& draw) { return draw.ratio(); };
  return {.time_median_us = us(&DrawTimes::plan_ps),
          .time_p99_us = us(&DrawTimes::plan_ps, 0.99),
          .bound_median_us = us(&DrawTimes::bound_ps),
          .ratio_median = Of(draws, 0.5, ratio),
          .ratio_p99 = Of(draws, 0.99, ratio),
          .deepep_us = us(&DrawTimes::deepep_ps),
          .pairwise_us = us(&DrawTimes::pairwise_ps),
          .padded_us = us(&DrawTimes::padded_ps)};
}

std::string ShortUs(double us) { return FormatDurationShort(static_cast<int64_t>(us * 1e6)); }

std::string WayText(const ExpertPlan& plan) {
  std::string text = fmt::format("{}, {}", plan.route, Counted(plan.lanes, "lane"));
  if (plan.entry == dispatch::Entry::kNeeded) text += ", rows enter other hosts by ranks that need them";
  return text;
}

std::string PlanText(const ExpertPlan& plan, const dispatch::Evaluation& evaluation,
                     const std::string& routing, const std::string& output, double total_s) {
  const Summary summary = SummaryOf(evaluation.draws);
  std::string text =
      fmt::format("{} on {}: {}, {} experts, top-{}, up to {} tokens a rank, rows of {}B, {}\n",
                  dispatch::ToString(plan.call), plan.topology.name(), Counted(plan.sizes.ranks, "rank"),
                  plan.sizes.experts, plan.sizes.top_k, plan.sizes.max_tokens, plan.sizes.row_bytes, routing);
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<10} {}\n", name, value);
  };
  line("route", WayText(plan));
  line("time", fmt::format("{}, 99 % of {} within {}", ShortUs(summary.time_median_us),
                           Counted(std::ssize(evaluation.draws), "draw"), ShortUs(summary.time_p99_us)));
  line("bound", fmt::format("{} of the realised counts   ratio {:.4f}, 99 % within {:.4f}",
                            ShortUs(summary.bound_median_us), summary.ratio_median, summary.ratio_p99));
  line("beside",
       fmt::format("DeepEP's route {}, pairwise alltoallv {}, padded alltoall {}", ShortUs(summary.deepep_us),
                   ShortUs(summary.pairwise_us), ShortUs(summary.padded_us)));
  line("sums", plan.sums == dispatch::Sums::kHome ? "at home alone, rounded once"
                                                  : "by every rank on the way, rounded at each");
  line("messages",
       fmt::format("{} of {} at most, {} of slots on a rank at most",
                   Counted(std::ssize(plan.hops), "connection"), Counted(plan.rows_per_message, "row"),
                   FormatSizeShort(dispatch::MostBufferBytes(plan))));
  if (!evaluation.busiest.empty()) line("busiest", "link " + evaluation.busiest);
  line("verified", "for every routing that fits");
  line("total", fmt::format("{:.2f} s", total_s));
  if (!output.empty()) line("file", output);
  return text;
}

Row PlanRow(const ExpertPlan& plan, const dispatch::Evaluation& evaluation, const std::string& output,
            double synthesis_s, double total_s) {
  const Summary summary = SummaryOf(evaluation.draws);
  return {{"engine", std::string("experts")},
          {"ranks", int64_t{plan.sizes.ranks}},
          {"draws", static_cast<int64_t>(evaluation.draws.size())},
          {"time_median_us", summary.time_median_us},
          {"time_p99_us", summary.time_p99_us},
          {"bound_median_us", summary.bound_median_us},
          {"ratio_median", summary.ratio_median},
          {"ratio_p99", summary.ratio_p99},
          {"deepep_route_us", summary.deepep_us},
          {"pairwise_us", summary.pairwise_us},
          {"padded_us", summary.padded_us},
          {"file", output.empty() ? Cell() : Cell(output)},
          {"collective", std::string(dispatch::ToString(plan.call))},
          {"topology", plan.topology.name()},
          {"experts", int64_t{plan.sizes.experts}},
          {"top_k", int64_t{plan.sizes.top_k}},
          {"tokens", int64_t{plan.sizes.max_tokens}},
          {"row_bytes", plan.sizes.row_bytes},
          {"aim", std::string(dispatch::ToString(plan.aim))},
          {"route", plan.route},
          {"entry", std::string(dispatch::ToString(plan.entry))},
          {"sums", std::string(dispatch::ToString(plan.sums))},
          {"lanes", int64_t{plan.lanes}},
          {"rows_per_message", int64_t{plan.rows_per_message}},
          {"connections", static_cast<int64_t>(plan.hops.size())},
          {"buffer_bytes", dispatch::MostBufferBytes(plan)},
          {"busiest_link", evaluation.busiest.empty() ? Cell() : Cell(evaluation.busiest)},
          {"warnings", plan.topology.spec().warnings},
          {"synthesis_s", synthesis_s},
          {"total_s", total_s},
          {"version", std::string(kVersion)}};
}

}  // namespace

void AddExpertFlags(Command& command, ExpertFlags& flags) {
  command.AddOption("--tokens", flags.tokens,
                    fmt::format("dispatch, combine: tokens of a rank at most (default: {})", kTokens));
  command
      .AddOption("--row", flags.row,
                 fmt::format("a token's row with its scales (default: {}; combine: {})", kRowOfDispatch,
                             kRowOfCombine))
      .TypeName("SIZE");
  command
      .AddOption("--routing", flags.routing,
                 "how tokens choose experts: uniform, zipf:1.0, or a JSON or CSV file (default: uniform)")
      .TypeName("uniform|zipf:S|FILE");
  command
      .AddOption("--aim", flags.aim,
                 "latency: a slot for every row; throughput: few slots, long messages (default)")
      .OneOf({"latency", "throughput"});
  command
      .AddOption("--draws", flags.draws,
                 "routings that the plan is timed on (default: as many as take about a second)")
      .Between(1, 1 << 20);
}

bool IsExpertCall(const std::string& collective) {
  return collective == "dispatch" || collective == "combine";
}

Status CheckFlagsOfExperts(const Command& command, const std::string& collective) {
  const bool is_call = IsExpertCall(collective);
  for (const std::string_view flag : kFlags)
    if (!is_call && command.IsGiven(std::string(flag)))
      return UsageError(fmt::format("{}: only together with --collective dispatch or combine", flag));
  for (const char* flag : kOthers)
    if (is_call && command.IsGiven(flag))
      return UsageError(fmt::format("{}: not together with --collective {}", flag, collective));
  return OkStatus();
}

Status PlanExperts(const TopologyFlags& machine, const std::string& collective, const ExpertFlags& flags,
                   const TrainingFlags& numbers, uint64_t seed, const std::string& output,
                   const Session& session) {
  if (!output.empty()) XCCL_RETURN_IF_ERROR(CheckWritable(output));
  XCCL_ASSIGN_OR_RETURN(const Topology topology, ReadTopology(machine, session.json));
  XCCL_ASSIGN_OR_RETURN(const dispatch::PlanRequest request,
                        RequestOf(topology, collective, flags, numbers, seed));
  double synthesis_s = 0;
  dispatch::Evaluation evaluation;
  XCCL_ASSIGN_OR_RETURN(
      const ExpertPlan plan,
      WithProgress(
          "planning " + collective + " on " + topology.name(), [&](Progress&) -> StatusOr<ExpertPlan> {
            const auto began = std::chrono::steady_clock::now();
            XCCL_ASSIGN_OR_RETURN(ExpertPlan made, dispatch::MakeExpertPlan(topology, request));
            synthesis_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
            if (const auto faults = dispatch::VerifyExpertPlan(made); !faults.empty())
              return BugError(fmt::format("the plan is wrong: [{}] {}", faults[0].rule, faults[0].text));
            XCCL_ASSIGN_OR_RETURN(
                evaluation, dispatch::Evaluate(made, request,
                                               flags.draws.value_or(dispatch::DefaultDraws(request.sizes))));
            return made;
          }));
  session.is_writing = true;
  if (!output.empty()) XCCL_RETURN_IF_ERROR(dispatch::WriteExpertPlan(plan, output));
  if (session.json)
    return Print(ToJson(PlanRow(plan, evaluation, output, synthesis_s, session.TotalSeconds())));
  return Print(PlanText(plan, evaluation, flags.routing.value_or("uniform"), output, session.TotalSeconds()));
}

bool IsExpertPlanFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string begin(1 << 10, '\0');
  file.read(begin.data(), std::ssize(begin));
  begin.resize(static_cast<size_t>(file.gcount()));
  return KindOfText(begin) == FileKind::kExpertPlan;
}

void AddExpertRunFlags(Command& command, ExpertRunFlags& flags) {
  command
      .AddOption(
          "--routing", flags.routing,
          "plans of dispatch: how tokens choose experts: uniform, zipf:1.0, or a file (default: uniform)")
      .TypeName("uniform|zipf:S|FILE");
  command.AddOption(
      "--tokens", flags.tokens,
      "plans of dispatch: tokens of a rank (default: the plan's, or as many as 512MiB of rows hold)");
}

namespace {

// Checks that the group has a process for each rank, all with the same plan and flags.
Status AgreeOnRun(const std::string& path, const std::string& routing, int32_t ranks,
                  const dispatch::MeasureOptions& options) {
  if (const int32_t started = options.group->bootstrap().ranks(); started != ranks)
    return InvalidInput(fmt::format("{}: a plan for {} ranks; {} processes were started; hint: mpirun -n {}",
                                    path, ranks, started, ranks));
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  XCCL_RETURN_IF_ERROR(options.group->Agree("plan", fmt::format("{:016x}", HashOf(text))));
  std::string of_file;
  for (const int32_t expert : options.routing.of_file.experts) of_file += fmt::format("{},", expert);
  return options.group->Agree("--routing, --tokens, --dtype or --iters",
                              fmt::format("{} {:016x} {} {} {}", routing, HashOf(of_file), options.tokens,
                                          ToString(options.type), options.calls));
}

}  // namespace

Status RunExperts(const std::string& path, const ExpertRunFlags& flags, dispatch::MeasureOptions options,
                  const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const ExpertPlan plan, dispatch::ReadExpertPlan(path));
  options.tokens = flags.tokens.value_or(dispatch::TokensThatFit(plan.sizes));
  if (options.tokens < 1 || options.tokens > plan.sizes.max_tokens)
    return UsageError(
        fmt::format("--tokens: {}; expected 1 to {}, the plan's", options.tokens, plan.sizes.max_tokens));
  const std::string routing = flags.routing.value_or("uniform");
  XCCL_ASSIGN_OR_RETURN(options.routing, dispatch::ReadRoutingSource(routing, plan.sizes));
  if (options.group != nullptr) XCCL_RETURN_IF_ERROR(AgreeOnRun(path, routing, plan.sizes.ranks, options));
  const std::vector<std::string> names = {"call",        "time us",   "logical GB/s",
                                          "fabric GB/s", "host GB/s", "wrong"};
  std::vector<std::vector<std::string>> table = {names};
  std::vector<Row> rows;
  int64_t wrong = 0;
  const auto add = [&](Call call, const dispatch::Measured& measured) {
    const auto rate = [&](int64_t bytes) {
      return static_cast<double>(bytes) / plan.sizes.ranks / measured.time_us / 1e3;
    };
    wrong += measured.wrong;
    table.push_back({std::string(dispatch::ToString(call)), fmt::format("{:.1f}", measured.time_us),
                     fmt::format("{:.3f}", rate(measured.logical_bytes)),
                     fmt::format("{:.3f}", rate(measured.fabric_bytes)),
                     fmt::format("{:.3f}", rate(measured.inside_bytes)), fmt::format("{}", measured.wrong)});
    rows.push_back({{"call", std::string(dispatch::ToString(call))},
                    {"time_us", measured.time_us},
                    {"logical_gb_per_s", rate(measured.logical_bytes)},
                    {"fabric_gb_per_s", rate(measured.fabric_bytes)},
                    {"host_gb_per_s", rate(measured.inside_bytes)},
                    {"wrong", measured.wrong},
                    {"ranks", int64_t{plan.sizes.ranks}},
                    {"tokens", int64_t{options.tokens}},
                    {"routing", routing},
                    {"dtype", std::string(ToString(options.type))},
                    {"version", std::string(kVersion)}});
  };
  XCCL_ASSIGN_OR_RETURN(const std::vector<dispatch::MeasuredCall> calls, dispatch::Measure(plan, options));
  for (const dispatch::MeasuredCall& measured : calls) {
    add(Call::kDispatch, measured.dispatch);
    add(Call::kCombine, measured.combine);
  }
  const bool processes = options.processes || options.group != nullptr;
  const bool shows = options.group == nullptr || options.group->bootstrap().rank() == Rank(0);
  if (shows && session.json)
    XCCL_RETURN_IF_ERROR(Print(ToJson(rows)));
  else if (shows)
    XCCL_RETURN_IF_ERROR(Print(fmt::format(
        "{} on {}: {} as {}, {} tokens a rank, {}, sums in {}\n{}", plan.route, plan.topology.name(),
        Counted(plan.sizes.ranks, "rank"), processes ? "processes" : "threads", options.tokens, routing,
        ToString(options.type), TableText(table))));
  return wrong == 0 ? OkStatus() : BugError(path + ": elements are wrong; the table says how many");
}

void AddExpertSimulateFlags(Command& command, ExpertSimulateFlags& flags) {
  command
      .AddOption(
          "--routing", flags.routing,
          "plans of dispatch: how tokens choose experts: uniform, zipf:1.0, or a file (default: uniform)")
      .TypeName("uniform|zipf:S|FILE");
  command.AddOption("--draws", flags.draws, "plans of dispatch: routings that are drawn (default: 1)")
      .Between(1, 1 << 20);
}

Status SimulateExperts(const std::string& path, const ExpertSimulateFlags& flags, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const ExpertPlan plan, dispatch::ReadExpertPlan(path));
  const std::string routing = flags.routing.value_or("uniform");
  XCCL_ASSIGN_OR_RETURN(const dispatch::RoutingSource source,
                        dispatch::ReadRoutingSource(routing, plan.sizes));
  const dispatch::Bound bound(plan.topology, dispatch::FindDomains(plan.topology), plan.sizes, plan.call);
  const dispatch::HopIndex index(plan);
  dispatch::Predictor predictor(plan, plan.call);
  Random random(0);
  std::vector<std::vector<std::string>> table = {
      {"call", "time us", "predicted us", "bound us", "time/bound"}};
  std::vector<Row> rows;
  const std::string call(dispatch::ToString(plan.call));
  for (int32_t draw = 0; draw < flags.draws.value_or(1); ++draw) {
    const dispatch::Routing drawn = dispatch::DrawRouting(source, plan.sizes, random);
    const double time_us = PsToUs(dispatch::SimulateCall(plan, drawn, plan.call));
    const double predicted_us = PsToUs(predictor.TimePs(dispatch::RowsOfHops(plan, index, drawn, plan.call)));
    const double bound_us = PsToUs(bound.TimePs(drawn));
    const double ratio = bound_us > 0 ? time_us / bound_us : 1;
    table.push_back({call, fmt::format("{:.3f}", time_us), fmt::format("{:.3f}", predicted_us),
                     fmt::format("{:.3f}", bound_us), fmt::format("{:.4f}", ratio)});
    rows.push_back({{"engine", std::string("experts")},
                    {"time_us", time_us},
                    {"predicted_us", predicted_us},
                    {"bound_us", bound_us},
                    {"ratio", ratio},
                    {"collective", call},
                    {"topology", plan.topology.name()},
                    {"routing", routing},
                    {"version", std::string(kVersion)}});
  }
  return Print(session.json ? ToJson(rows) : TableText(table));
}

Status VerifyExperts(const std::string& path, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const ExpertPlan plan, dispatch::ReadExpertPlanUnverified(path));
  const std::vector<dispatch::Fault> faults = dispatch::VerifyExpertPlan(plan);
  std::string text;
  std::vector<Row> rows;
  for (const dispatch::Fault& fault : faults) {
    text += fmt::format("{}: [{}] {}\n", path, fault.rule, fault.text);
    rows.push_back({{"rule", fault.rule}, {"where", std::string()}, {"text", fault.text}});
  }
  if (faults.empty())
    text = fmt::format("{}: ok: {} on {}, {}, {}, proved for every routing of up to {} tokens a rank\n", path,
                       dispatch::ToString(plan.call), plan.topology.name(),
                       Counted(int64_t{plan.lanes} * plan.sizes.ranks, "routing tree"),
                       Counted(std::ssize(plan.hops), "connection"), plan.sizes.max_tokens);
  if (session.json) text = ToJson({{"ok", faults.empty()}}, "violations", rows);
  XCCL_RETURN_IF_ERROR(Print(text));
  if (faults.empty()) return OkStatus();
  return InvalidInput(fmt::format("{}: {}{}; expected none", path,
                                  faults.size() < dispatch::kMostFaults ? "" : "at least ",
                                  Counted(std::ssize(faults), "violation")));
}

}  // namespace xccl
