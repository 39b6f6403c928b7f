// One bar, measured in a child that sends its figures back as one line of text.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "base/strings.h"
#include "base/units.h"
#include "bench/bars.h"
#include "bench/child.h"
#include "bench/machines.h"
#include "ir/analysis/schedule_stats.h"
#include "ir/bounds/bound.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate_program.h"
#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/engines.h"

namespace xccl {
namespace {

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// One plan and its figures; `seconds` ends where the plan is chosen, simulated and bounded.
struct Made {
  Synthesis synthesis;
  int64_t time_ps = 0;
  double seconds = 0;
};

StatusOr<Made> MakePlan(const Engine& engine, const SynthesisRequest& request) {
  const double began = CpuSeconds();
  XCCL_RETURN_IF_ERROR(engine.Serves(request));
  XCCL_ASSIGN_OR_RETURN(Synthesis synthesis, engine.Synthesize(request));
  const int64_t time_ps = synthesis.simulation
                              ? synthesis.simulation->time_ps
                              : Simulate(synthesis.schedule, synthesis.collective, *request.topology,
                                         {.size_bytes = request.size_bytes, .model = request.model})
                                    .time_ps;
  return Made{std::move(synthesis), time_ps, CpuSeconds() - began};
}

Collective CollectiveOf(const Bar& bar, const Topology& topology) {
  CollectiveSpec spec;
  spec.kind = bar.collective;
  for (int32_t r = bar.first_member; r < topology.num_ranks(); ++r) spec.ranks.push_back(Rank(r));
  return Collective::Create(std::move(spec)).value();
}

// The algbw of an endless stream, which the busiest link limits, in GB/s.
double SteadyGbPerS(const Synthesis& made, const SynthesisRequest& request) {
  const Simulation simulation =
      Simulate(made.schedule, made.collective, *request.topology,
               {.size_bytes = request.size_bytes, .model = request.model, .record_links = true});
  const int64_t busiest = *std::ranges::max_element(simulation.link_busy_ps);
  return busiest > 0 ? static_cast<double>(simulation.size_bytes) * 1e3 / static_cast<double>(busiest) : 0;
}

Status ProgramLoss(const Made& made, const SynthesisRequest& request, BarResult& result) {
  XCCL_ASSIGN_OR_RETURN(
      const LoweredProgram lowered,
      LowerFolded(made.synthesis.schedule, made.synthesis.collective, *request.topology,
                  {.size_bytes = request.size_bytes, .model = request.model, .least_ps = made.time_ps}));
  const auto& [collective, program] = lowered;
  XCCL_RETURN_IF_ERROR(ToStatus(VerifyProgram(program, collective, *request.topology)));
  XCCL_ASSIGN_OR_RETURN(const Simulation time,
                        SimulateProgram(program, collective, *request.topology,
                                        {.size_bytes = request.size_bytes, .model = request.model}));
  result.loss = static_cast<double>(time.time_ps) / static_cast<double>(made.time_ps);
  return OkStatus();
}

// The best of all engines but auto. smt gets a small limit, since it may search for long.
constexpr int64_t kSmtWork = 2'000'000;
void BestOther(const SynthesisRequest& request, int64_t auto_ps, BarResult& result) {
  int64_t best_ps = 0;
  for (const Engine& engine : AllEngines()) {
    if (engine.asks_others) continue;
    SynthesisRequest asked = request;
    if (engine.searches_long) asked.limits.work_units = kSmtWork;
    const StatusOr<Made> made = MakePlan(engine, asked);
    if (!made.ok() || (best_ps > 0 && made->time_ps >= best_ps)) continue;
    best_ps = made->time_ps;
    result.other = engine.name;
  }
  result.loss = best_ps > 0 ? static_cast<double>(auto_ps) / static_cast<double>(best_ps) : 1;
}

Status Measure(const Bar& bar, const BarLimits& limits, BarResult& result) {
  XCCL_ASSIGN_OR_RETURN(const Topology topology, LoadMachine(bar.machine, limits.graphs_folder));
  result.ranks = topology.num_ranks();
  XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(bar.engine));
  const Collective collective = CollectiveOf(bar, topology);
  SynthesisRequest request{
      .topology = &topology, .collective = &collective, .size_bytes = bar.size_bytes, .model = bar.model};
  if (bar.chunks > 0) request.limits.chunks = bar.chunks;
  const double began = CpuSeconds();
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  XCCL_ASSIGN_OR_RETURN(const Made made, MakePlan(*engine, request));
  XCCL_ASSIGN_OR_RETURN(const Bound bound, LowerBound(topology, collective, bar.size_bytes, bar.model));
  result.seconds = CpuSeconds() - began;
  XCCL_RETURN_IF_ERROR(
      ToStatus(VerifySchedule(made.synthesis.schedule, made.synthesis.collective, topology)));
  if (bar.total_seconds) result.seconds = CpuSeconds() - began;
  result.made = true;
  result.winner = made.synthesis.engine;
  result.time_us = PsToUs(made.time_ps);
  result.bound_us = PsToUs(bound.bound_ps);
  result.gb_per_s = static_cast<double>(bound.size_bytes) * 1e3 / static_cast<double>(made.time_ps);
  result.depth = Stats(made.synthesis.schedule, made.synthesis.collective, topology).depth;
  if (bar.check == BarCheck::kRate) result.gb_per_s = SteadyGbPerS(made.synthesis, request);
  if (bar.check == BarCheck::kProgram) return ProgramLoss(made, request, result);
  if (bar.check == BarCheck::kEveryone) BestOther(request, made.time_ps, result);
  return OkStatus();
}

// One line, fields apart by tabs; `problem` last.
std::string ToLine(const BarResult& r) {
  std::string problem = r.problem;
  std::ranges::replace(problem, '\t', ' ');
  std::ranges::replace(problem, '\n', ' ');
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", r.made ? 1 : 0, r.ranks, r.time_us,
                     r.bound_us, r.gb_per_s, r.seconds, r.loss, r.depth, r.winner, r.other, problem);
}

bool FromLine(const std::string& line, BarResult& r) {
  const std::vector<std::string> f = Split(line, '\t');
  if (f.size() != 11) return false;
  r.made = f[0] == "1";
  r.ranks = std::stoi(f[1]);
  r.time_us = std::stod(f[2]);
  r.bound_us = std::stod(f[3]);
  r.gb_per_s = std::stod(f[4]);
  r.seconds = std::stod(f[5]);
  r.loss = std::stod(f[6]);
  r.depth = std::stoi(f[7]);
  r.winner = f[8];
  r.other = f[9];
  r.problem = f[10];
  return true;
}

}  // namespace

BarResult RunBar(const Bar& bar, const BarLimits& limits) {
  const ChildResult child =
      RunInChild({.cpu_seconds = limits.cpu_seconds, .memory_mib = limits.memory_mib}, [&] {
        BarResult result;
        const Status status = Measure(bar, limits, result);
        if (!status.ok()) result.problem = status.message();
        return ToLine(result);
      });
  BarResult result;
  if (!FromLine(child.text, result)) result.problem = child.problem;
  result.peak_mib = child.peak_mib;
  return result;
}

std::string Describe(const Bar& bar) {
  std::vector<std::string> words;
  if (bar.most_ratio > 0) words.push_back(fmt::format("ratio<={:g}", bar.most_ratio));
  if (bar.most_us > 0) words.push_back(fmt::format("<={:.7g}us", bar.most_us));
  if (bar.least_gb_per_s > 0) words.push_back(fmt::format(">={:.6g}GB/s", bar.least_gb_per_s));
  if (bar.most_depth > 0) words.push_back(fmt::format("depth<={}", bar.most_depth));
  if (bar.check == BarCheck::kProgram) words.push_back(fmt::format("program/schedule<={:g}", bar.most_loss));
  if (bar.check == BarCheck::kEveryone) words.push_back("<=every engine");
  if (bar.most_seconds > 0) words.push_back(fmt::format("<={:g}s", bar.most_seconds));
  return Join(words, " ");
}

Misses MissesOf(const Bar& bar, const BarResult& result) {
  if (!result.made || !result.problem.empty())
    return {result.problem.empty() ? "nothing made" : result.problem, 0};
  // Figures are compared as they are published: to the last digit shown.
  constexpr double kRounding = 1.00005;
  std::vector<std::string> texts;
  Misses misses;
  const auto check = [&](double value, double most, double rounding, const std::string& text) {
    if (most <= 0) return;
    misses.by = std::max(misses.by, value / most);
    if (value > most * rounding) texts.push_back(text);
  };
  const double ratio = result.bound_us > 0 ? result.time_us / result.bound_us : 1;
  check(ratio, bar.most_ratio, 1, fmt::format("ratio {:.4f}", ratio));
  check(result.time_us, bar.most_us, kRounding, fmt::format("{:.4f} x", result.time_us / bar.most_us));
  if (bar.least_gb_per_s > 0)
    check(bar.least_gb_per_s / result.gb_per_s, 1, kRounding, fmt::format("{:.2f} GB/s", result.gb_per_s));
  check(result.depth, bar.most_depth, 1, fmt::format("depth {}", result.depth));
  const std::string of = bar.check == BarCheck::kEveryone ? result.other : "program";
  check(result.loss, bar.most_loss, 1, fmt::format("{} {:.4f} x", of, result.loss));
  check(result.seconds, bar.most_seconds, 1, fmt::format("{:.2f} s", result.seconds));
  misses.text = Join(texts, ", ");
  return misses;
}

}  // namespace xccl
