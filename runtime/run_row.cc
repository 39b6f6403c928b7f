#include "runtime/run_row.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/spread.h"

namespace xccl {
namespace {

// Time, bandwidths and wrong elements of one mode; a mode that does not exist shows N/A.
std::string Mode(const RunRow* row) {
  if (row == nullptr) return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "N/A", "N/A", "N/A", "N/A");
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", FitNumber(row->time_us, 7),
                     FitNumber(row->algbw_gb_per_s, 6), FitNumber(row->busbw_gb_per_s, 6), row->wrong);
}

std::string Line(const RunRow* out_of_place, const RunRow* in_place, const RunTableOptions& options) {
  const RunRow& any = out_of_place != nullptr ? *out_of_place : *in_place;
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}  {:>9}\n", any.size_bytes, any.count,
                     ToString(options.type), options.op ? ToString(*options.op) : "none",
                     options.root ? options.root->value : -1, Mode(out_of_place), Mode(in_place),
                     any.predicted_us ? FitNumber(*any.predicted_us, 9) : "N/A");
}

}  // namespace

std::string FitNumber(double value, int width) {
  for (int decimals = 2; decimals >= 0; --decimals) {
    std::string text = fmt::format("{:.{}f}", value, decimals);
    if (static_cast<int>(text.size()) <= width) return text;
  }
  std::string text = fmt::format("{:.1e}", value);
  return static_cast<int>(text.size()) <= width ? text : fmt::format("{:.0e}", value);
}

std::optional<double> SpreadOf(const RunRow& row) {
  if (row.sample_us.size() < static_cast<size_t>(kSamples) || MedianOf(row.sample_us) <= 0)
    return std::nullopt;
  return SpreadOf(std::span(row.sample_us));
}

bool AllRight(std::span<const RunRow> rows) {
  return std::ranges::all_of(rows,
                             [](const RunRow& row) { return row.wrong == 0 && row.out_of_bounds == 0; });
}

std::string RunTableHead(const RunTableOptions& options) {
  std::string text = fmt::format("# Collective test starting: {}\n", options.title);
  text += fmt::format("# {} warmup iters: {} iters: {} validation: 1\n", options.ranks,
                      options.warmup ? std::to_string(*options.warmup) : "until times settle",
                      options.iterations);
  if (!options.details.empty()) text += "# " + options.details + "\n";
  if (!options.predicted.empty()) text += "# predicted: " + options.predicted + "\n";
  text += "#\n";
  text += fmt::format("#{:62}out-of-place{:23}in-place{:10}\n", "", "", "");
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count", "type", "redop", "root");
  for (int mode = 0; mode < 2; ++mode)
    text += fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "time", "algbw", "busbw", "#wrong");
  text += fmt::format("  {:>9}\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "predicted", "(B)", "(elements)", "",
                      "", "");
  for (int mode = 0; mode < 2; ++mode)
    text += fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
  return text + fmt::format("  {:>9}\n", "(us)");
}

std::string RunTableRows(std::span<const RunRow> rows, const RunTableOptions& options) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool paired = !rows[i].in_place && i + 1 < rows.size() && rows[i + 1].in_place;
    text += Line(rows[i].in_place ? nullptr : &rows[i],
                 rows[i].in_place ? &rows[i]
                 : paired         ? &rows[i + 1]
                                  : nullptr,
                 options);
    if (paired) ++i;
  }
  return text;
}

std::string RunTableEnd(std::span<const RunRow> all_rows, const RunTableOptions& options) {
  int64_t out_of_bounds = 0;
  double bandwidth = 0;
  std::optional<double> spread;  // the largest
  for (const RunRow& row : all_rows) {
    out_of_bounds += row.out_of_bounds;
    bandwidth += row.busbw_gb_per_s / static_cast<double>(all_rows.size());
    spread = std::max(spread, SpreadOf(row));
  }
  std::string text =
      fmt::format("# Out of bounds values : {} {}\n", out_of_bounds, out_of_bounds == 0 ? "OK" : "FAILED");
  if (spread)
    text +=
        fmt::format("# Spread of the times  : up to {:.0f} % (standard error of the median of {} samples)\n",
                    100 * *spread, kSamples);
  text += fmt::format("# Avg bus bandwidth    : {:g} \n#\n# Collective test concluded: {}\n", bandwidth,
                      options.title);
  return text;
}

}  // namespace xccl
