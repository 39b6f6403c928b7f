#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/show.h"

namespace xccl {

std::string WhatTimesAreOf(const std::string& machine, const std::string& no_machine) {
  return machine.empty()
             ? fmt::format("times on {}{}{}", OnIdealLinks(), no_machine.empty() ? "" : "\n", no_machine)
             : fmt::format("times of programs on a machine: {}", machine);
}

std::string SkippedText(const std::vector<std::string>& reasons) {
  std::string text;
  for (const std::string& reason : reasons) text += "left out: " + reason + "\n";
  return text;
}

namespace {

constexpr size_t kSizeWidth = 7;   // "1023MiB"
constexpr size_t kTimeWidth = 12;  // 99 seconds in us, with three decimal places

// Adds to the table of one size: below a row why its plan was kept, unless the row is above the rows of all
// other engines; at the end the size that was rounded. The lines are indented by `indent`.
std::string WithRemarks(const std::string& table, const std::vector<PlanTime>& times, size_t indent) {
  const auto add = [&](const std::string& line, std::string& text) {
    text += std::string(indent, ' ') + line + '\n';
  };
  std::string text;
  size_t begin = 0;
  for (size_t row = 0; begin < table.size(); ++row) {
    const size_t end = table.find('\n', begin) + 1;
    text += table.substr(begin, end - begin);
    begin = end;
    if (row == 0) continue;  // the names of columns
    const std::string& note = times[row - 1].note;
    if (note.find(" % faster") != std::string::npos) add(note, text);
  }
  for (const std::string& line : Split(RoundedText(times), '\n'))
    if (!line.empty()) add(line, text);
  return text;
}

}  // namespace

std::string CompareText(const Comparison& of_size, bool first) {
  const bool several = !of_size.machines.empty();
  std::vector<std::vector<std::string>> table = {
      {"size", "engine", "time us", "algbw GB/s", "busbw GB/s", "time/bound"}};
  if (several) table[0].insert(table[0].begin() + 1, "topology");
  for (const PlanTime& timed : of_size.times) {
    std::vector<std::string> cells = {NameOfRow(timed), fmt::format("{:.3f}", PsToUs(timed.time_ps)),
                                      fmt::format("{:.2f}", GbPerS(timed.algbw_bytes_per_s)),
                                      fmt::format("{:.2f}", GbPerS(timed.busbw_bytes_per_s)),
                                      fmt::format("{:.4f}", timed.ratio)};
    if (several) cells.insert(cells.begin(), timed.topology);
    cells.insert(cells.begin(),
                 table.size() > 1 ? "" : SizeText(timed.size_bytes > 0 ? timed.asked_bytes : 0));
    table.push_back(std::move(cells));
  }
  // A row is shown before the rows after it are known, so columns are as wide as any size, name and time.
  std::vector<size_t> widths = {std::max(kSizeWidth, of_size.longest_size), of_size.longest_name, kTimeWidth};
  if (several) {
    size_t longest = 0;
    for (const Compared& on : of_size.machines) longest = std::max(longest, on.topology.size());
    widths.insert(widths.begin() + 1, longest);
  }
  const std::string text = WithRemarks(TableText(table, widths), of_size.times, widths[0] + 4);
  if (!first) return text.substr(text.find('\n') + 1);
  std::string head = of_size.title + "\n";
  const std::vector<std::string> machines = TimesOfMachines(of_size);
  if (machines.empty()) head += WhatTimesAreOf(of_size.on.machine) + "\n";
  for (const std::string& line : machines) head += line + "\n";
  for (const std::string& note : of_size.notes) head += note + "\n";
  return head + text;
}

std::vector<Row> ToRows(const Comparison& comparison) {
  std::vector<Row> rows;
  for (const PlanTime& timed : comparison.times) {
    const auto own = std::ranges::find(comparison.machines, timed.topology, &Compared::topology);
    Row row = ToRows({timed}, own == comparison.machines.end() ? comparison.on : *own).front();
    row.emplace_back("messages", timed.messages ? Cell(*timed.messages) : Cell());
    row.emplace_back("threadblocks", timed.threadblocks ? Cell(int64_t{*timed.threadblocks}) : Cell());
    row.emplace_back("measured", timed.measured);
    row.emplace_back("note", timed.note.empty() ? Cell() : Cell(timed.note));
    rows.push_back(std::move(row));
  }
  return rows;
}

namespace {

// "; auto takes 1.50 times as long at 1MiB": auto, or else the engine that is the fastest on average, at the
// last size.
std::string SlowdownText(const FailureComparison& comparison, size_t draw) {
  const int64_t size = comparison.times.back().size_bytes;
  const auto of_size = [&](const FailureTimes& row) { return row.size_bytes == size; };
  auto row = std::ranges::find_if(comparison.times, [&](const FailureTimes& each) {
    return of_size(each) && each.engine == kDefaultEngine;
  });
  if (row == comparison.times.end()) row = std::ranges::find_if(comparison.times, of_size);
  if (!row->whole_us || *row->whole_us <= 0 || !row->draw_us[draw]) return "";
  return fmt::format("; {} takes {:.2f} times as long at {}", row->engine,
                     *row->draw_us[draw] / *row->whole_us, SizeText(size));
}

}  // namespace

std::string CompareText(const FailureComparison& comparison) {
  std::vector<std::vector<std::string>> table = {
      {"size", "engine", "whole us", "mean us", "mean/bound", "worst/bound", "planned", "synthesis ms"}};
  int64_t last = -1;
  for (const FailureTimes& row : comparison.times) {
    table.push_back({row.size_bytes == last ? "" : SizeText(row.size_bytes), row.engine,
                     row.whole_us ? fmt::format("{:.3f}", *row.whole_us) : "-",
                     fmt::format("{:.3f}", row.mean_us), fmt::format("{:.4f}", row.mean_ratio),
                     fmt::format("{:.4f}", row.worst_ratio), fmt::format("{}/{}", row.planned, row.draws),
                     fmt::format("{:.1f}", 1e3 * row.synthesis_s)});
    last = row.size_bytes;
  }
  std::string text = fmt::format("{}\ntimes on {}\n", comparison.title, OnIdealLinks());
  if (!comparison.fewer.empty()) text += comparison.fewer + "\n";
  for (size_t i = 0; i < comparison.failed.size(); ++i)
    text += fmt::format("draw {}: {}{}\n", i, comparison.failed[i], SlowdownText(comparison, i));
  return text + TableText(table) +
         "whole us: without a failed cable\n"
         "means are over the draws with a plan; no two draws are alike\n"
         "draws are of all cables of the machine, used by a plan or not\n" +
         SkippedText(comparison.skipped);
}

std::vector<Row> ToRows(const FailureComparison& comparison) {
  std::vector<Row> rows;
  const Compared& on = comparison.on;
  for (const FailureTimes& row : comparison.times) {
    std::vector<double> draws;
    for (const std::optional<double>& us : row.draw_us) draws.push_back(us.value_or(std::nan("")));
    rows.push_back({{"engine", row.engine},
                    {"size_bytes", row.size_bytes},
                    {"time_us", row.mean_us},
                    {"bound_us", row.bound_us},
                    {"ratio", row.mean_ratio},
                    {"worst_ratio", row.worst_ratio},
                    {"planned", int64_t{row.planned}},
                    {"draws", int64_t{row.draws}},
                    {"synthesis_s", row.synthesis_s},
                    {"whole_us", OrNull(row.whole_us)},
                    {"collective", on.collective},
                    {"topology", on.topology},
                    {"model", on.model},
                    {"version", kVersion},
                    {"failed", comparison.failed},
                    {"draw_us", std::move(draws)}});
  }
  return rows;
}

}  // namespace xccl
