#include "pipeline/view/comparison_chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "draw/svg.h"
#include "pipeline/view/engine_lines.h"

namespace xccl {
namespace {

struct Chart {
  std::string_view name;
  std::string title;
  std::function<double(const PlanTime&)> value;  // 0: none
  std::function<std::string(double)> show;
  // Returns whether the axis is logarithmic. The argument is the greatest value ÷ the least value.
  std::function<bool(double)> is_logarithmic;
};

// Returns a text such as "12.5us" or "1KiB" with a space: "12.5 µs", "1 KiB". A number without a
// unit gets " B".
std::string WithSpace(std::string text) {
  const auto unit = static_cast<size_t>(
      std::ranges::find_if(text, [](unsigned char c) { return std::isalpha(c) != 0; }) - text.begin());
  if (unit == text.size()) return text + " B";
  if (text.substr(unit) == "us") text.replace(unit, 1, "µ");
  return text.insert(unit, " ");
}

const std::vector<Chart>& Charts() {
  static const std::vector<Chart> charts = {
      {"time", "Time", [](const PlanTime& timed) { return static_cast<double>(timed.time_ps); },
       [](double ps) { return WithSpace(FormatDurationShort(std::llround(ps))); },
       [](double) { return true; }},
      {"busbw", "Bus bandwidth", [](const PlanTime& timed) { return timed.busbw_bytes_per_s; },
       [](double bytes_per_s) { return fmt::format("{:.4g} GB/s", GbPerS(bytes_per_s)); },
       [](double) { return false; }},
      {"ratio", "Time / lower bound", [](const PlanTime& timed) { return timed.ratio; },
       [](double ratio) { return fmt::format("{:.3g}", ratio); }, [](double range) { return range > 10; }},
      {"messages", "Messages",
       [](const PlanTime& timed) { return static_cast<double>(timed.messages.value_or(0)); },
       [](double messages) { return fmt::format("{:.0f}", messages); },
       [](double range) { return range > 10; }},
  };
  return charts;
}

StatusOr<double> ParseLengthPt(std::string_view flag, std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"in", 72}, {"cm", 72 / 2.54}, {"mm", 72 / 25.4}, {"pt", 1}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  for (const auto& [name, points] : kUnits)
    if (error == std::errc() && unit == name && number > 0 && number * points <= 7200) return number * points;
  return UsageError(
      fmt::format("{}: '{}'; expected a length up to 100in such as 3.4in, 86mm, 8.6cm or 245pt", flag, text));
}

}  // namespace

const std::vector<std::string_view>& ChartNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> made;
    for (const Chart& chart : Charts()) made.push_back(chart.name);
    return made;
  }();
  return names;
}

StatusOr<FigureSize> ParseFigureSize(std::string_view width, std::string_view font) {
  FigureSize size;
  XCCL_ASSIGN_OR_RETURN(size.width_pt, ParseLengthPt("--width", width));
  XCCL_ASSIGN_OR_RETURN(size.font_pt, ParseLengthPt("--font", font));
  const double least = FigureSize::kLeastWidthInFonts * size.font_pt;
  if (size.width_pt < least)
    return UsageError(
        fmt::format("--width: {}; expected at least {} times the font's {}, which is {}pt; hint: --font={}pt",
                    width, FigureSize::kLeastWidthInFonts, font, svg::Number(least),
                    svg::Number(std::floor(10 * size.width_pt / FigureSize::kLeastWidthInFonts) / 10)));
  return size;
}

StatusOr<std::string> ComparisonChart(const Comparison& comparison, std::string_view name,
                                      const FigureSize& size, const Origin& origin) {
  const Chart& chart = *std::ranges::find(Charts(), name, &Chart::name);
  const std::vector<EngineLine> lines = EngineLines(comparison);
  Figure figure;
  figure.title = fmt::format("{}: {}", comparison.title, chart.title);
  std::vector<std::string> notes = TimesOfMachines(comparison);
  if (notes.empty())
    notes.push_back(comparison.on.machine.empty() ? "Times of schedules on ideal links"
                                                  : "Times of programs on " + comparison.on.machine);
  notes.insert(notes.end(), comparison.notes.begin(), comparison.notes.end());
  notes.push_back(fmt::format("xccl-synth {}: {}", origin.version, origin.command));
  figure.description = Join(notes, ". ");
  double low = 0, high = 0;
  for (const EngineLine& line : lines) {
    FigureLine drawn{.name = line.name, .points = {}};
    drawn.is_first_choice = line.group == EngineGroup::kAuto;
    drawn.is_dashed = line.group == EngineGroup::kMeasured;
    drawn.is_grey = !drawn.is_first_choice && !drawn.is_dashed && !line.leads &&
                    line.group != EngineGroup::kMachines && lines.size() > svg::kNumSeries;
    for (const PlanTime& point : line.points) {
      const double value = chart.value(point);
      if (!(value > 0) || point.size_bytes <= 0) continue;
      drawn.points.emplace_back(static_cast<double>(point.size_bytes), value);
      low = low > 0 ? std::min(low, value) : value;
      high = std::max(high, value);
    }
    if (!drawn.points.empty()) figure.lines.push_back(std::move(drawn));
  }
  if (figure.lines.empty()) return InvalidInput(fmt::format("--chart: no row has a value for '{}'", name));
  figure.x = {"Size", true,
              [](double size_bytes) { return WithSpace(FormatSize(std::llround(size_bytes))); }};
  figure.y = {chart.title, chart.is_logarithmic(high / low), chart.show};
  return FigureSvg(figure, size);
}

}  // namespace xccl
