#include <fmt/core.h>

#include "base/units.h"
#include "cli/show.h"

namespace xccl {

std::string CompareText(const Comparison& comparison) {
  std::vector<std::vector<std::string>> table = {
      {"size", "engine", "time us", "algbw GB/s", "busbw GB/s", "time/bound"}};
  int64_t last = -1;
  for (const TimedPlan& timed : comparison.times) {
    std::vector<std::string> cells = TimedCells(timed);
    cells.insert(cells.begin(), timed.size_bytes == last ? "" : FormatSize(timed.size_bytes));
    table.push_back(std::move(cells));
    last = timed.size_bytes;
  }
  std::string text = comparison.title + "\n" + TableText(table);
  for (const std::string& reason : comparison.left_out) text += "left out: " + reason + "\n";
  return text;
}

std::string CompareCsv(const std::vector<TimedPlan>& times) {
  std::string text = "engine,size_bytes,time_us,algbw_gb_per_s,busbw_gb_per_s,bound_us,ratio\n";
  for (const TimedPlan& timed : times)
    text += fmt::format("{},{},{},{},{},{},{}\n", timed.engine, timed.size_bytes, PsToUs(timed.time_ps),
                        GbPerS(timed.algbw_bytes_per_s), GbPerS(timed.busbw_bytes_per_s),
                        PsToUs(timed.bound_ps), timed.ratio);
  return text;
}

std::string CompareText(const FailureComparison& comparison) {
  std::vector<std::vector<std::string>> table = {
      {"size", "engine", "whole us", "mean us", "mean/bound", "worst/bound", "planned", "synthesis ms"}};
  int64_t last = -1;
  for (const FailureTimes& row : comparison.times) {
    table.push_back({row.size_bytes == last ? "" : FormatSize(row.size_bytes), row.engine,
                     row.whole_us ? fmt::format("{:.3f}", *row.whole_us) : "-",
                     fmt::format("{:.3f}", row.mean_us), fmt::format("{:.4f}", row.mean_ratio),
                     fmt::format("{:.4f}", row.worst_ratio), fmt::format("{}/{}", row.planned, row.draws),
                     fmt::format("{:.1f}", 1e3 * row.synthesis_s)});
    last = row.size_bytes;
  }
  std::string text = comparison.title + "\n";
  for (size_t i = 0; i < comparison.failed.size(); ++i)
    text += fmt::format("draw {}: {}\n", i, comparison.failed[i]);
  text += TableText(table);
  for (const std::string& reason : comparison.left_out) text += "left out: " + reason + "\n";
  return text;
}

std::string CompareCsv(const std::vector<FailureTimes>& times) {
  std::string text =
      "engine,size_bytes,time_us,bound_us,ratio,worst_ratio,whole_us,planned,draws,synthesis_s\n";
  for (const FailureTimes& row : times)
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", row.engine, row.size_bytes, row.mean_us,
                        row.bound_us, row.mean_ratio, row.worst_ratio, row.whole_us.value_or(0), row.planned,
                        row.draws, row.synthesis_s);
  return text;
}

std::vector<Row> ToRows(const std::vector<FailureTimes>& times) {
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
                    {"whole_us", OrNull(row.whole_us)}});
  return rows;
}

}  // namespace xccl
