#include "cli/show.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "base/version.h"

namespace xccl {
namespace {

// The size that was asked for; 0 for a barrier, which has no size.
int64_t AskedBytes(const PlanTime& timed) {
  if (timed.size_bytes == 0) return 0;
  return timed.asked_bytes > 0 ? timed.asked_bytes : timed.size_bytes;
}

std::string RelaysText(const std::vector<Rank>& relays, int32_t idle) {
  constexpr size_t kShown = 16;
  if (relays.empty()) return "none of " + Counted(idle, "idle rank");
  std::string text = fmt::format("{} of {}:", relays.size(), Counted(idle, "idle rank"));
  for (size_t i = 0; i < std::min(kShown, relays.size()); ++i) text += fmt::format(" {}", relays[i].value);
  return text + (relays.size() > kShown ? " ..." : "");
}

}  // namespace

std::string FormatSizeShort(int64_t bytes) {
  constexpr std::string_view kUnits[] = {"TiB", "GiB", "MiB", "KiB"};
  int shift = 40;
  for (const std::string_view unit : kUnits) {
    if (bytes >> shift > 0)
      return fmt::format("{:.4g}{}", static_cast<double>(bytes) / static_cast<double>(int64_t{1} << shift),
                         unit);
    shift -= 10;
  }
  return fmt::format("{}B", bytes);
}

std::vector<int64_t> Numbers(std::span<const Rank> ranks) {
  std::vector<int64_t> numbers;
  for (Rank r : ranks) numbers.push_back(r.value);
  return numbers;
}

std::string OnIdealLinks(std::optional<int64_t> time_ps) {
  return fmt::format("ideal links{}: bandwidths and latencies alone",
                     time_ps ? " " + FormatDurationShort(*time_ps) : "");
}

std::string RoundedText(const std::vector<PlanTime>& times) {
  std::string text;
  std::set<std::pair<int64_t, int64_t>> said;
  for (const PlanTime& timed : times)
    if (AskedBytes(timed) != timed.size_bytes && said.emplace(timed.asked_bytes, timed.size_bytes).second)
      text +=
          fmt::format("{} is rounded down to {}\n", SizeText(timed.asked_bytes), SizeText(timed.size_bytes));
  return text;
}

std::vector<Row> ToRows(const std::vector<PlanTime>& times, const Compared& on) {
  std::vector<Row> rows;
  for (const PlanTime& timed : times)
    rows.push_back({{"engine", timed.engine},
                    {"size_bytes", timed.size_bytes},
                    {"time_us", PsToUs(timed.time_ps)},
                    {"algbw_gb_per_s", GbPerS(timed.algbw_bytes_per_s)},
                    {"busbw_gb_per_s", GbPerS(timed.busbw_bytes_per_s)},
                    {"bound_us", PsToUs(timed.bound_ps)},
                    {"ratio", timed.ratio},
                    {"made_by", timed.made_by},
                    {"collective", on.collective},
                    {"topology", on.topology},
                    {"model", on.model},
                    {"machine", on.machine.empty() ? Cell() : Cell(on.machine)},
                    {"version", kVersion},
                    {"asked_bytes", AskedBytes(timed)}});
  return rows;
}

std::string TimesText(const std::vector<PlanTime>& times) {
  std::vector<std::vector<std::string>> table = {
      {"size", "time us", "algbw GB/s", "busbw GB/s", "bound us", "time/bound"}};
  for (const PlanTime& timed : times)
    table.push_back({SizeText(AskedBytes(timed)), fmt::format("{:.3f}", PsToUs(timed.time_ps)),
                     fmt::format("{:.2f}", GbPerS(timed.algbw_bytes_per_s)),
                     fmt::format("{:.2f}", GbPerS(timed.busbw_bytes_per_s)),
                     fmt::format("{:.3f}", PsToUs(timed.bound_ps)), fmt::format("{:.4f}", timed.ratio)});
  return TableText(table) + RoundedText(times);
}

Row PlanRow(const PlanResult& result, const Ended& ended) {
  const Plan& plan = result.plan;
  const ScheduleStats& stats = result.schedule_stats;
  const Cell none;
  std::vector<std::string> warnings = plan.topology.spec().warnings;
  warnings.insert(warnings.end(), ended.warnings.begin(), ended.warnings.end());
  if (!result.no_program.empty()) warnings.push_back("no program: " + result.no_program);
  const auto program = [&](auto value) {
    return result.program_stats ? Cell(int64_t{value(*result.program_stats)}) : none;
  };
  return {{"engine", plan.made_by.engine},
          {"ranks", int64_t{plan.collective.num_members()}},
          {"chunks_per_rank",
           plan.collective.HasEvenParts() ? Cell(int64_t{plan.collective.ChunksOf(PartId(0))}) : none},
          {"steps", int64_t{stats.steps}},
          {"rounds", stats.rounds},
          {"transfers", stats.transfers},
          {"messages", stats.messages},
          {"synthesis_s", result.synthesis_s},
          {"size_bytes", result.simulation.size_bytes},
          {"time_us", PsToUs(result.simulation.time_ps)},
          {"time_program_us", result.program_time_ps ? Cell(PsToUs(*result.program_time_ps)) : none},
          {"algbw_gb_per_s", GbPerS(result.simulation.algbw_bytes_per_s())},
          {"busbw_gb_per_s", GbPerS(BusBandwidth(plan.collective, result.simulation))},
          {"latency_us", PsToUs(result.bound.latency_ps)},
          {"bandwidth_us", result.bound.bandwidth_ps / 1e6},
          {"bound_us", PsToUs(result.bound.bound_ps)},
          {"bound_kind", std::string(ToString(result.bound.kind))},
          {"ratio", result.ratio},
          {"exact", result.exact},
          {"bitwise_same", plan.bitwise_same.value()},
          {"depth", int64_t{stats.depth}},
          {"relays", Numbers(result.relays)},
          {"threadblocks", program([](const ProgramStats& p) { return p.threadblocks; })},
          {"channels", program([](const ProgramStats& p) { return p.channels; })},
          {"scratch_bytes", program([](const ProgramStats& p) { return p.scratch_bytes; })},
          {"machine", result.program_stats && !result.machine.empty() ? Cell(result.machine) : none},
          {"warnings", warnings},
          {"total_s", ended.total_s},
          {"file", ended.file.empty() ? none : Cell(ended.file)},
          {"collective", plan.collective.name()},
          {"topology", plan.topology.name()},
          {"model", std::string(ToString(plan.made_by.model))},
          {"version", kVersion},
          {"asked_bytes", plan.made_by.size_bytes},
          {"note", result.note.empty() ? none : Cell(result.note)}};
}

std::string PlanText(const PlanResult& result, const std::string& requested_engine, const Ended& ended) {
  const Plan& plan = result.plan;
  const ScheduleStats& stats = result.schedule_stats;
  const Collective& collective = plan.collective;
  // The plan's time is that of its program on its machine, and else that of its schedule on ideal links.
  const bool on_machine = result.program_time_ps && !result.machine.empty();
  Simulation timed = result.simulation;
  if (on_machine) timed.time_ps = *result.program_time_ps;
  const int64_t asked = timed.size_bytes == 0 ? 0 : plan.made_by.size_bytes;  // 0: a barrier
  std::string text = fmt::format(
      "{} on {}: {}, {}{}, {} model\n", collective.name(), plan.topology.name(),
      Counted(collective.num_members(), "rank"), SizeText(asked),
      asked == timed.size_bytes ? "" : fmt::format(" (rounded down to {})", SizeText(timed.size_bytes)),
      ToString(plan.made_by.model));
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<10} {}\n", name, value);
  };
  const std::string chosen = requested_engine == plan.made_by.engine || plan.made_by.engine == kNoEngine
                                 ? ""
                                 : fmt::format(" (chosen by {})", requested_engine);
  line("engine", plan.made_by.engine + chosen + (result.note.empty() ? "" : ": " + result.note));
  line("time", fmt::format("{}   algbw {}   busbw {}", FormatDurationShort(timed.time_ps),
                           FormatBandwidthShort(timed.algbw_bytes_per_s()),
                           FormatBandwidthShort(BusBandwidth(collective, timed))));
  line("", on_machine ? OnIdealLinks(result.simulation.time_ps) : OnIdealLinks());
  if (!result.no_machine.empty()) line("", result.no_machine);
  if (on_machine && !result.loss.empty()) line("", result.loss);
  line("bound",
       fmt::format("{}{} (latency {}, bandwidth {} by {})   ratio {:.4f}{}",
                   FormatDurationShort(result.bound.bound_ps),
                   result.bound.kind == BoundKind::kFlowOverTime
                       ? fmt::format(" by {}", ToString(result.bound.kind))
                       : "",
                   FormatDurationShort(result.bound.latency_ps),
                   FormatDurationShort(static_cast<int64_t>(result.bound.bandwidth_ps)),
                   ToString(result.bound.bandwidth_kind), RatioOf(timed.time_ps, result.bound.bound_ps),
                   !result.exact ? ""
                   : on_machine  ? "   exact on ideal links"
                                 : "   exact"));
  line("schedule",
       fmt::format("{}, {}, {} in {}, depth {}, {}", Counted(stats.steps, "step"),
                   Counted(stats.rounds, "round"), Counted(stats.transfers, "transfer"),
                   Counted(stats.messages, "message"), stats.depth,
                   collective.HasEvenParts() ? Counted(collective.ChunksOf(PartId(0)), "chunk") + " a part"
                                             : Counted(collective.num_chunks(), "chunk")));
  if (const int32_t idle = plan.topology.num_ranks() - collective.num_members(); idle > 0)
    line("relays", RelaysText(result.relays, idle));
  if (result.program_stats) {
    // Lowering promises 5 %; any loss beyond that is shown.
    const double loss = RatioOf(*result.program_time_ps, result.simulation.time_ps) - 1;
    line("program",
         fmt::format(
             "{}, {} and {} scratch a rank at most, {}{}",
             Counted(result.program_stats->threadblocks, "threadblock"),
             Counted(result.program_stats->channels, "channel"),
             SizeText(result.program_stats->scratch_bytes), ToString(plan.program->program.protocol),
             on_machine
                 ? ""
                 : fmt::format(", simulated {}{}", FormatDurationShort(*result.program_time_ps),
                               loss > 0.05 ? fmt::format(": {:.0f} % over the schedule", 100 * loss) : "")));
    if (!on_machine && !result.loss.empty()) line("", result.loss);
    if (!result.machine.empty()) line("machine", result.machine);
    if (!result.in_flight.empty()) line("in flight", result.in_flight);
  } else if (!result.no_program.empty()) {
    line("program", "none: " + result.no_program);
  } else if (!result.machine.empty()) {
    line("machine", "with --lower: the program's time by " + result.machine);
  }
  if (collective.Reduces())
    line("bits", plan.bitwise_same.value() ? "the same on every rank" : "may differ between ranks");
  line("synthesis", fmt::format("{:.3g} s of {:.3g} s in all", result.synthesis_s, ended.total_s));
  if (!ended.file.empty()) line("file", ended.file);
  return text;
}

std::vector<std::string> ExplanationTexts(std::span<const NamedLine> why) {
  std::vector<std::string> texts;
  for (const NamedLine& line : why) texts.push_back(line.name + ": " + line.text);
  return texts;
}

}  // namespace xccl
