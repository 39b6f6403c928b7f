#include "cli/experts.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/file_kinds.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strings.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/interrupt.h"
#include "cli/limits.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/show.h"
#include "dispatch/make_plan.h"
#include "dispatch/report.h"
#include "dispatch/verify.h"
#include "runtime/experts/measure.h"

namespace xccl {
namespace {

using dispatch::Call;
using dispatch::ExpertPlan;

constexpr std::array<std::string_view, 5> kFlags = {"--tokens", "--row", "--routing", "--aim", "--draws"};
// Flags of plan and of compare that fit routes of experts, besides kFlags: those of the machine, and the
// rest.
constexpr std::string_view kOfMachine[] = {
    "--degrade",  "--fabric",     "--gpu-arch",      "--gpu-busids",     "--gpus-per-switch", "--host",
    "--hosts",    "--hosts-file", "--job",           "--link",           "--nic-rate",        "--no-rails",
    "--pcie-gen", "--rails",      "--nvlink-domain", "--plain-switches", "--without-link"};
constexpr std::string_view kOthers[] = {"--collective", "--experts", "--top-k",      "--seed",
                                        "--output",     "--json",    "--time-limit", "--memory-limit"};

template <typename T>
const T& ValueOf(const dispatch::Facts& facts, std::string_view name) {
  return std::get<T>(std::ranges::find(facts, name, &std::pair<std::string, dispatch::Value>::first)->second);
}
double NumberOf(const dispatch::Facts& facts, std::string_view name) { return ValueOf<double>(facts, name); }

std::string ShortUs(double us) { return FormatDurationShort(static_cast<int64_t>(us * 1e6)); }

std::string WayText(const ExpertPlan& plan) {
  std::string text = fmt::format("{}, {}", plan.route, Counted(plan.lanes, "lane"));
  if (plan.entry != dispatch::Entry::kFixed) text += ", rows enter other hosts by ranks that need them";
  if (plan.entry == dispatch::Entry::kNested) text += ", each block of ranks there once";
  return text;
}

std::string PlanText(const ExpertPlan& plan, const dispatch::Evaluation& evaluation,
                     const std::string& routing, const std::string& output, double total_s) {
  const dispatch::Facts times = dispatch::FactsOf(plan, evaluation).times;
  const auto number = [&](std::string_view name) { return NumberOf(times, name); };
  std::string text = WorkText(plan.topology.name(), plan.call, plan.sizes, routing);
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<10} {}\n", name, value);
  };
  line("route", WayText(plan));
  line("time", fmt::format("{}, 99 % of {} within {}{}", ShortUs(number("time_median_us")),
                           Counted(std::ssize(evaluation.draws), "draw"), ShortUs(number("time_p99_us")),
                           CopiesText(evaluation.copies)));
  line("bound", fmt::format("{} of the realised counts   ratio {:.4f}, 99 % within {:.4f}",
                            ShortUs(number("bound_median_us")), number("ratio_median"), number("ratio_p99")));
  if (evaluation.has_beside)
    line("beside", fmt::format("DeepEP's route {}, pairwise alltoallv {}, padded alltoall {}",
                               ShortUs(number("deepep_route_us")), ShortUs(number("pairwise_us")),
                               ShortUs(number("padded_us"))));
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
  const dispatch::PlanFacts facts = dispatch::FactsOf(plan, evaluation);
  Row row = RowOf(facts.times);
  row.emplace_back("file", output.empty() ? Cell() : Cell(output));
  std::ranges::move(RowOf(facts.rest), std::back_inserter(row));
  row.emplace_back("warnings", plan.topology.spec().warnings);
  row.emplace_back("synthesis_s", synthesis_s);
  row.emplace_back("total_s", total_s);
  row.emplace_back("version", std::string(kVersion));
  return row;
}

}  // namespace

StatusOr<dispatch::PlanRequest> ExpertRequestOf(const Topology& topology, const std::string& collective,
                                                const ExpertFlags& flags, uint64_t seed) {
  dispatch::Asked asked{.call = collective == "combine" ? Call::kCombine : Call::kDispatch,
                        .experts = flags.experts,
                        .top_k = flags.top_k,
                        .tokens = flags.tokens,
                        .routing = flags.routing.value_or("uniform"),
                        .aim = flags.aim.value_or("throughput"),
                        .seed = seed};
  if (flags.row) {
    XCCL_ASSIGN_OR_RETURN(asked.row_bytes, FlagValue("--row", ParseSize(*flags.row)));
  }
  return dispatch::RequestOf(topology.num_ranks(), asked, "--");
}

std::string WorkText(const std::string& topology, Call call, const dispatch::Sizes& sizes,
                     const std::string& routing) {
  return fmt::format("{} on {}: {}, {} experts, top-{}, up to {} tokens a rank, rows of {}B, {}\n",
                     dispatch::ToString(call), topology, Counted(sizes.ranks, "rank"), sizes.experts,
                     sizes.top_k, sizes.max_tokens, sizes.row_bytes, routing);
}

Row RowOf(const dispatch::Facts& facts) {
  Row row;
  for (const auto& [name, value] : facts)
    row.emplace_back(name, std::visit([](const auto& held) { return Cell(held); }, value));
  return row;
}

void AddExpertFlags(Command& command, ExpertFlags& flags) {
  command
      .AddOption(
          "--tokens", flags.tokens,
          fmt::format("dispatch, combine: tokens of a rank at most (default: {})", dispatch::kUsualTokens))
      .Between(1, dispatch::kMostTokens);
  command
      .AddOption("--row", flags.row,
                 fmt::format("a token's row with its scales (default: {}B; combine: {}B)",
                             dispatch::kUsualRowOfDispatch, dispatch::kUsualRowOfCombine))
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

void AddExpertCounts(Command& command, ExpertFlags& flags) {
  command.AddOption("--experts", flags.experts, "dispatch, combine: experts in all (default: 256)");
  command.AddOption("--top-k", flags.top_k, "dispatch, combine: experts of a token (default: 8)");
}

bool IsExpertCall(const std::string& collective) {
  return collective == "dispatch" || collective == "combine";
}

Status CheckFlagsOfExperts(const Command& command, const std::string& collective) {
  const bool is_call = IsExpertCall(collective);
  for (const std::string_view flag : kFlags)
    if (!is_call && command.IsGiven(std::string(flag)))
      return UsageError(fmt::format("{}: only together with --collective dispatch or combine", flag));
  // plan has these two for training, too.
  for (const char* flag : {"--experts", "--top-k"})
    if (!is_call && !command.Has("--for") && command.IsGiven(flag))
      return UsageError(fmt::format("{}: only together with --collective dispatch or combine", flag));
  for (const std::string& flag : command.GivenFlags()) {
    const auto is = [&](const auto& flags) { return std::ranges::find(flags, flag) != std::end(flags); };
    if (is_call && !is(kFlags) && !is(kOfMachine) && !is(kOthers))
      return UsageError(fmt::format("{}: not together with --collective {}", flag, collective));
  }
  return OkStatus();
}

std::string CopiesText(int32_t copies) {
  return copies == 1 ? "" : fmt::format(", each drawn token for {} alike", copies);
}

void HintAtMemoryOfExperts() { SetMemoryHint("fewer ranks, fewer --tokens"); }

void SayLongDraws(const std::string& place, const dispatch::Sizes& sizes, int32_t draws, double seconds,
                  const Session& session) {
  constexpr double kLongSeconds = 10;
  if (seconds < kLongSeconds || session.deadline.has_limit()) return;
  SayNote(fmt::format("{}: {} of {} choices of experts each take about {:.0f} s; hint: {}", place,
                      Counted(draws, "draw"), dispatch::ChoicesOf(sizes), std::ceil(seconds),
                      draws > 1 ? "fewer --draws" : "fewer --tokens"));
}

namespace {

// A plan with the draws that it was timed on.
struct Planned {
  ExpertPlan plan;
  dispatch::Evaluation evaluation;
  double synthesis_s = 0;
};
StatusOr<Planned> MakeAndTime(const Topology& topology, const dispatch::PlanRequest& request, int32_t draws,
                              const Deadline& deadline) {
  const auto began = std::chrono::steady_clock::now();
  XCCL_ASSIGN_OR_RETURN(const dispatch::Groundwork ground, dispatch::Prepare(topology, request, deadline));
  XCCL_ASSIGN_OR_RETURN(ExpertPlan made, dispatch::MakeExpertPlan(ground, deadline));
  const double synthesis_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  ground.Say("proof");
  if (const auto faults = dispatch::VerifyExpertPlan(made); !faults.empty())
    return BugError(fmt::format("the plan is wrong: [{}] {}", faults[0].rule, faults[0].text));
  XCCL_ASSIGN_OR_RETURN(dispatch::Evaluation evaluation, dispatch::Evaluate(made, ground, draws, deadline));
  return Planned{std::move(made), std::move(evaluation), synthesis_s};
}

}  // namespace

Status PlanExperts(const TopologyFlags& machine, const std::string& collective, const ExpertFlags& flags,
                   uint64_t seed, const std::string& output, const Session& session) {
  HintAtMemoryOfExperts();
  if (!output.empty()) XCCL_RETURN_IF_ERROR(CheckWritable(output));
  XCCL_ASSIGN_OR_RETURN(const Topology topology, ReadTopology(machine, session.json));
  XCCL_ASSIGN_OR_RETURN(dispatch::PlanRequest request, ExpertRequestOf(topology, collective, flags, seed));
  const int32_t draws = flags.draws.value_or(dispatch::DefaultDraws(request.sizes));
  SayLongDraws(topology.name(), request.sizes, draws, dispatch::SecondsOfDraws(request.sizes, draws),
               session);
  const Deadline deadline = CatchInterrupt(session.deadline);
  XCCL_ASSIGN_OR_RETURN(
      const Planned made,
      WithProgress("planning " + collective + " on " + topology.name(), [&](Progress& progress) {
        request.progress = [&](const std::string& what) { progress.Say(what); };
        return MakeAndTime(topology, request, draws, deadline);
      }));
  session.is_writing = true;
  if (!output.empty()) XCCL_RETURN_IF_ERROR(dispatch::WriteExpertPlan(made.plan, output));
  if (session.json)
    return Print(
        ToJson(PlanRow(made.plan, made.evaluation, output, made.synthesis_s, session.TotalSeconds())));
  return Print(PlanText(made.plan, made.evaluation, flags.routing.value_or("uniform"), output,
                        session.TotalSeconds()));
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
  command
      .AddOption(
          "--tokens", flags.tokens,
          "plans of dispatch: tokens of a rank (default: the plan's, or as many as 512MiB of rows hold)")
      .Between(1, dispatch::kMostTokens);
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
  XCCL_ASSIGN_OR_RETURN(const std::vector<dispatch::MeasuredCall> calls, dispatch::Measure(plan, options));
  std::vector<std::vector<std::string>> table = {
      {"call", "time us", "logical GB/s", "fabric GB/s", "host GB/s", "wrong"}};
  std::vector<Row> rows;
  int64_t all_wrong = 0;
  for (const dispatch::Facts& facts : dispatch::FactsOf(calls, plan.sizes.ranks)) {
    const auto number = [&](std::string_view name) { return NumberOf(facts, name); };
    const int64_t wrong = ValueOf<int64_t>(facts, "wrong");
    all_wrong += wrong;
    table.push_back({ValueOf<std::string>(facts, "call"), fmt::format("{:.1f}", number("time_us")),
                     fmt::format("{:.3f}", number("logical_gb_per_s")),
                     fmt::format("{:.3f}", number("fabric_gb_per_s")),
                     fmt::format("{:.3f}", number("host_gb_per_s")), fmt::format("{}", wrong)});
    Row& row = rows.emplace_back(RowOf(facts));
    row.emplace_back("ranks", int64_t{plan.sizes.ranks});
    row.emplace_back("tokens", int64_t{options.tokens});
    row.emplace_back("routing", routing);
    row.emplace_back("dtype", std::string(ToString(options.type)));
    row.emplace_back("version", std::string(kVersion));
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
  return all_wrong == 0 ? OkStatus() : BugError(path + ": elements are wrong; the table says how many");
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

namespace {

// Each choice of an expert by a token has a place in the routing, and a row on every hop of its way. Measured
// with rows of two hops.
constexpr double kBytesOfSimulatedChoice = 44;
constexpr double kSecondsOfSimulatedChoice = 500e-9;

// A plan's file may say any number of tokens.
Status CheckSimulated(const std::string& path, const dispatch::Sizes& sizes, int32_t draws,
                      const Session& session) {
  constexpr int64_t kMost = int64_t{1} << 28;  // rows are numbered with 31 bits; a row takes a few hops
  const int64_t choices = dispatch::ChoicesOf(sizes);
  const std::string what = fmt::format("{} of {} tokens make {} choices of experts",
                                       Counted(sizes.ranks, "rank"), sizes.max_tokens, choices);
  if (choices > kMost)
    return InvalidInput(
        fmt::format("{}: {}; at most {} are simulated; hint: fewer --tokens", path, what, kMost));
  const double seconds = kSecondsOfSimulatedChoice * static_cast<double>(choices);
  if (session.deadline.SecondsLeft() < seconds)
    return LimitReached(
        fmt::format("{}: {}; their simulation takes about {:.0f} s; expected at most {}; hint: "
                    "--time-limit={:.0f}s",
                    path, what, std::ceil(seconds), session.deadline.ToString(), std::ceil(2 * seconds)));
  SayLongDraws(path, sizes, draws, seconds * draws, session);
  return CheckMemory(path, fmt::format("{} choices of experts", choices),
                     kBytesOfSimulatedChoice * static_cast<double>(choices));
}

}  // namespace

Status SimulateExperts(const std::string& path, const ExpertSimulateFlags& flags, const Session& session) {
  HintAtMemoryOfExperts();
  XCCL_ASSIGN_OR_RETURN(const ExpertPlan plan, dispatch::ReadExpertPlan(path));
  const int32_t draws = flags.draws.value_or(1);
  XCCL_RETURN_IF_ERROR(CheckSimulated(path, plan.sizes, draws, session));
  const std::string routing = flags.routing.value_or("uniform");
  XCCL_ASSIGN_OR_RETURN(const dispatch::RoutingSource source,
                        dispatch::ReadRoutingSource(routing, plan.sizes));
  std::vector<std::vector<std::string>> table = {
      {"call", "time us", "predicted us", "bound us", "time/bound"}};
  std::vector<Row> rows;
  const std::vector<dispatch::Facts> simulated = WithProgress("simulating " + path, [&](Progress&) {
    return dispatch::SimulateDraws(plan, source, routing, draws, session.deadline);
  });
  for (const dispatch::Facts& facts : simulated) {
    const auto number = [&](std::string_view name) { return NumberOf(facts, name); };
    table.push_back({std::string(dispatch::ToString(plan.call)), fmt::format("{:.3f}", number("time_us")),
                     fmt::format("{:.3f}", number("predicted_us")), fmt::format("{:.3f}", number("bound_us")),
                     fmt::format("{:.4f}", number("ratio"))});
    rows.push_back(RowOf(facts));
    rows.back().emplace_back("version", std::string(kVersion));
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
