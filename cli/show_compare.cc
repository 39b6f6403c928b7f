#include <fmt/core.h>

#include "base/units.h"
#include "base/version.h"
#include "cli/show.h"

namespace xccl {

std::string WhatTimesAreOf(const std::string& machine) {
  return machine.empty() ? fmt::format("times {}", kIdeal)
                         : fmt::format("times of programs on a machine: {}", machine);
}

std::string LeftOutText(const std::vector<std::string>& reasons) {
  std::string text;
  for (const std::string& reason : reasons) text += "left out: " + reason + "\n";
  return text;
}

std::string CompareText(const Comparison& of_size, bool first) {
  std::vector<std::vector<std::string>> table = {
      {"size", "engine", "time us", "algbw GB/s", "busbw GB/s", "time/bound"}};
  for (const TimedPlan& timed : of_size.times) {
    std::vector<std::string> cells = TimedCells(timed);
    cells.insert(cells.begin(), table.size() > 1 ? "" : SizeText(timed.size_bytes));
    table.push_back(std::move(cells));
  }
  // Rows are shown before later ones are known, so widths are those of most sizes, names and times.
  const std::string text = TableText(table, {7, 22, 12});
  return first ? fmt::format("{}\n{}\n{}", of_size.title, WhatTimesAreOf(of_size.on.machine), text)
               : text.substr(text.find('\n') + 1);
}

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
  std::string text = fmt::format("{}\ntimes {}\n", comparison.title, kIdeal);
  for (size_t i = 0; i < comparison.failed.size(); ++i)
    text += fmt::format("draw {}: {}\n", i, comparison.failed[i]);
  return text + TableText(table) +
         "whole us: without a failed cable\n"
         "draws are of all cables of the machine, used by a plan or not\n" +
         LeftOutText(comparison.left_out);
}

std::vector<Row> ToRows(const std::vector<FailureTimes>& times, const Compared& on) {
  std::vector<Row> rows;
  for (const FailureTimes& row : times)
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
                    {"version", kVersion}});
  return rows;
}

}  // namespace xccl
