#include "cli/show_compare.h"

#include <fmt/format.h>

#include "base/units.h"
#include "cli/show.h"

namespace xccl {

std::string CompareText(const Comparison& comparison) {
  std::vector<std::vector<std::string>> table = {
      {"size", "engine", "time us", "algbw GB/s", "busbw GB/s", "time/bound"}};
  int64_t last = -1;
  for (const TimedPlan& timed : comparison.times) {
    table.push_back(
        {timed.size_bytes == last ? "" : FormatSize(timed.size_bytes), ShownName(timed),
         fmt::format("{:.3f}", PsToUs(timed.time_ps)), fmt::format("{:.2f}", GbPerS(timed.algbw_bytes_per_s)),
         fmt::format("{:.2f}", GbPerS(timed.busbw_bytes_per_s)), fmt::format("{:.4f}", timed.ratio)});
    last = timed.size_bytes;
  }
  std::string text = comparison.title + "\n" + TableText(table);
  for (const std::string& reason : comparison.left_out) text += "left out: " + reason + "\n";
  return text;
}

std::string CompareCsv(const Comparison& comparison) {
  std::string text = "engine,size_bytes,time_us,algbw_gb_per_s,busbw_gb_per_s,bound_us,ratio\n";
  for (const TimedPlan& timed : comparison.times)
    text += fmt::format("{},{},{},{},{},{},{}\n", timed.engine, timed.size_bytes, PsToUs(timed.time_ps),
                        GbPerS(timed.algbw_bytes_per_s), GbPerS(timed.busbw_bytes_per_s),
                        PsToUs(timed.bound_ps), timed.ratio);
  return text;
}

}  // namespace xccl
