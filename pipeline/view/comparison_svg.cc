// Draws three plots side by side: time, bus bandwidth, and time ÷ bound.
// 1. Convert the comparison to lines, one for each engine.
// 2. If there are several sizes, plot each measure over size. Both axes are logarithmic. Labels are placed
//    at the right ends of their lines, and moved apart if they would overlap.
// 3. If there is only one size, draw a row for each engine instead, the fastest first.
// 4. Add the notes below the plots: machines, grey lines and the command.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "draw/plot.h"
#include "draw/svg.h"
#include "pipeline/view/comparison.h"
#include "pipeline/view/engine_lines.h"

namespace xccl {
namespace {

using svg::kPlot;

struct Measure {
  std::string title;
  std::function<double(const PlanTime&)> value;
  std::function<std::string(double)> show;
};

std::string ShortBandwidth(double bytes_per_s) {
  return bytes_per_s >= 1e12 ? fmt::format("{:.4g} TB/s", bytes_per_s / 1e12)
                             : fmt::format("{:.4g} GB/s", bytes_per_s / 1e9);
}

std::array<Measure, 3> Measures() {
  return {{
      {"Time", [](const PlanTime& timed) { return static_cast<double>(timed.time_ps); },
       [](double ps) { return FormatDurationShort(std::llround(ps)); }},
      {"Bus bandwidth", [](const PlanTime& timed) { return timed.busbw_bytes_per_s; }, ShortBandwidth},
      {"Time / lower bound", [](const PlanTime& timed) { return timed.ratio; },
       [](double ratio) { return fmt::format("{:.3g}", ratio); }},
  }};
}

// Returns the width of one plot. The plots divide the width of the picture equally.
double PlotWidth() { return (kPlot.width - 2 * kPlot.margin) / static_cast<double>(Measures().size()); }

// A logarithmic axis: the value `low` is at pixel `from`, the value `high` at pixel `to`.
struct Axis {
  double low, high, from, to;
  double At(double value) const { return from + std::log(value / low) / std::log(high / low) * (to - from); }
};

// Returns an axis for values from `low` to `high`, with some space at both ends.
Axis AxisOf(double low, double high, double from, double to) {
  const double room = high > low ? std::pow(high / low, 0.04) : 2;
  return {low / room, high * room, from, to};
}

// Returns the ticks of an axis: 1, 2 and 5 times powers of ten; only powers of ten if the axis is long.
std::vector<double> Ticks(const Axis& axis) {
  std::vector<double> ticks;
  const bool few = axis.high / axis.low < 300;
  for (double power = std::pow(10, std::floor(std::log10(axis.low))); power <= axis.high; power *= 10)
    for (const double by : {1.0, 2.0, 5.0}) {
      if (by > 1 && !few) continue;
      if (by * power >= axis.low * 0.999 && by * power <= axis.high * 1.001) ticks.push_back(by * power);
    }
  return ticks;
}

struct Style {
  std::string_view colour;
  double width;
  bool has_label;
  bool dashed = false;
};

Style StyleOf(const std::vector<EngineLine>& lines, size_t i) {
  const EngineGroup group = lines[i].group;
  if (group == EngineGroup::kAuto) return {kPlot.ink, 5, true};
  const size_t place = i - (lines.front().group == EngineGroup::kAuto ? 1 : 0);
  const bool measured = group == EngineGroup::kMeasured;
  const bool is_machine = group == EngineGroup::kMachines && place < svg::kNumSeries;
  if (!lines[i].leads && !measured && !is_machine && lines.size() > svg::kNumSeries)
    return {kPlot.grey, 1, false};
  return {svg::SeriesColour(std::min(place, svg::kNumSeries - 1)), 2, true, measured};
}

struct Label {
  double line_y, y;
  std::string text;
  Style style;
};

// Moves labels apart so that they do not overlap. If all labels fit, they stay within [top, bottom].
void Spread(std::vector<Label>& labels, double top, double bottom) {
  std::ranges::stable_sort(labels, {}, &Label::line_y);
  double least = top;
  for (Label& label : labels) {
    label.y = std::max(label.line_y, least);
    least = label.y + kPlot.label;
  }
  double most = bottom;
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    label->y = std::min(label->y, most);
    most = label->y - kPlot.label;
  }
}

std::string Polyline(const std::vector<std::pair<double, double>>& points, const Style& style, bool is_auto) {
  std::string path;
  for (const auto& [x, y] : points)
    path += fmt::format("{}{} {}", path.empty() ? "M" : " L", svg::Number(x), svg::Number(y));
  return fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{}{}/>\n",
      path, style.colour, svg::Number(style.width), is_auto ? " stroke-opacity=\"0.3\"" : "",
      style.dashed ? " stroke-dasharray=\"6 4\"" : "");
}

// Returns the least and the greatest positive value of all points; 1 and 1 if no value is positive.
template <typename Value>
std::pair<double, double> Range(const std::vector<EngineLine>& lines, Value&& value) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const EngineLine& line : lines)
    for (const PlanTime& point : line.points) {
      const double seen = value(point);
      if (!(seen > 0)) continue;  // an empty buffer has no place on a logarithmic axis
      low = std::min(low, seen);
      high = std::max(high, seen);
    }
  return high > 0 ? std::pair(low, high) : std::pair(1.0, 1.0);
}

std::string Grid(const Axis& x, const Axis& y, const std::vector<double>& sizes, const Measure& measure) {
  std::string text;
  for (const double tick : Ticks(y)) {
    text += svg::Line(x.from, y.At(tick), x.to, y.At(tick), fmt::format("stroke=\"{}\"", kPlot.grid));
    text += svg::Text(x.from - 6, y.At(tick) + 4, "end", 11, kPlot.soft, measure.show(tick));
  }
  double last = -100;
  for (const double size : sizes) {
    const double at = x.At(size);
    text += svg::Line(at, y.from, at, y.from + 4, fmt::format("stroke=\"{}\"", kPlot.soft));
    if (at - last < 50) continue;
    last = at;
    text += svg::Text(at, y.from + 17, "middle", 11, kPlot.soft, FormatSize(static_cast<int64_t>(size)));
  }
  return text + svg::Line(x.from, y.from, x.to, y.from, fmt::format("stroke=\"{}\"", kPlot.soft));
}

// Draws the plot of one measure over sizes.
std::string Plot(const std::vector<EngineLine>& lines, const Measure& measure, double left) {
  const auto size_of = [](const PlanTime& point) { return static_cast<double>(point.size_bytes); };
  const auto [least_size, most_size] = Range(lines, size_of);
  const auto [low, high] = Range(lines, measure.value);
  const Axis x = AxisOf(least_size, most_size, left + kPlot.numbers, left + PlotWidth() - kPlot.labels);
  const Axis y = AxisOf(low, high, kPlot.top + kPlot.height, kPlot.top);
  std::vector<double> sizes;
  for (const EngineLine& line : lines)
    for (const PlanTime& point : line.points) sizes.push_back(size_of(point));
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::string text = svg::Text(left + kPlot.numbers, kPlot.top - 12, "start", 14, kPlot.ink, measure.title,
                               "font-weight=\"bold\"");
  text += Grid(x, y, sizes, measure);
  std::vector<Label> labels;
  // Later lines are drawn over earlier lines. Lines that do not lead come first, then the lines that lead.
  std::vector<size_t> order;
  for (size_t i = lines.size(); i-- > 0;) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return lines[i].leads; });
  for (const size_t i : order) {
    const Style style = StyleOf(lines, i);
    const bool is_auto = lines[i].group == EngineGroup::kAuto;
    std::vector<std::pair<double, double>> points;
    for (const PlanTime& point : lines[i].points)
      if (size_of(point) > 0 && measure.value(point) > 0)
        points.emplace_back(x.At(size_of(point)), y.At(measure.value(point)));
    if (points.empty()) continue;
    text += Polyline(points, style, is_auto);
    if (!style.has_label) continue;
    if (!is_auto)
      for (const auto& [px, py] : points)
        text += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"2.5\" fill=\"{}\"/>\n", svg::Number(px),
                            svg::Number(py), style.colour);
    labels.push_back({points.back().second, 0, svg::FittedName(lines[i].name, kPlot.label_letters), style});
  }
  Spread(labels, kPlot.top, kPlot.top + kPlot.height);
  for (const Label& label : labels) {
    text += svg::Line(x.to, label.line_y, x.to + 12, label.y,
                      fmt::format("stroke=\"{}\" stroke-opacity=\"0.6\"", label.style.colour));
    text += svg::Text(x.to + 16, label.y + 4, "start", 12, label.style.colour, label.text,
                      label.style.width > 2 ? "font-weight=\"bold\"" : "");
  }
  return text;
}

// Draws the plot of one measure if there is only one size: a row for each engine, in `order`.
std::string Rows(const std::vector<EngineLine>& lines, const std::vector<size_t>& order,
                 const Measure& measure, double left) {
  const auto [low, high] = Range(lines, measure.value);
  const double names = kPlot.letter * static_cast<double>(kPlot.label_letters);
  const double bottom = kPlot.top + kPlot.row * static_cast<double>(order.size());
  const Axis x = AxisOf(low, high, left + names, left + PlotWidth() - kPlot.numbers);
  std::string text =
      svg::Text(left + names, kPlot.top - 12, "start", 14, kPlot.ink, measure.title, "font-weight=\"bold\"");
  for (const double tick : Ticks(x))
    text += svg::Line(x.At(tick), kPlot.top, x.At(tick), bottom, fmt::format("stroke=\"{}\"", kPlot.grid));
  for (size_t row = 0; row < order.size(); ++row) {
    const EngineLine& line = lines[order[row]];
    const Style style = StyleOf(lines, order[row]);
    const double y = kPlot.top + kPlot.row * (static_cast<double>(row) + 0.5);
    const double value = measure.value(line.points.front());
    const std::string_view more = style.width > 2 ? "font-weight=\"bold\"" : "";
    text += svg::Text(left + names - 8, y + 4, "end", 12, style.has_label ? style.colour : kPlot.soft,
                      svg::FittedName(line.name, kPlot.label_letters), more);
    if (!(value > 0)) continue;
    text += svg::Line(
        x.from, y, x.At(value), y,
        fmt::format("stroke=\"{}\" stroke-width=\"2\"{}", style.has_label ? style.colour : kPlot.grey,
                    style.dashed ? " stroke-dasharray=\"6 4\"" : ""));
    text += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\"/>\n", svg::Number(x.At(value)),
                        svg::Number(y), style.has_label ? style.colour : kPlot.soft);
    text += svg::Text(x.At(value) + 9, y + 4, "start", 11, kPlot.ink, measure.show(value), more);
  }
  return text;
}

// Returns the text below the plots: machines, remarks, grey lines, command. Moves `y` to the text's end.
std::string Notes(const std::vector<EngineLine>& lines, const Comparison& comparison, const Origin& origin,
                  double& y) {
  std::vector<std::string> grey;
  for (size_t i = 0; i < lines.size(); ++i)
    if (!StyleOf(lines, i).has_label) grey.push_back(lines[i].name);
  std::vector<std::string> notes = TimesOfMachines(comparison);
  notes.insert(notes.end(), comparison.notes.begin(), comparison.notes.end());
  if (!grey.empty()) notes.push_back("Grey, at no size faster than all others: " + Join(grey, ", "));
  notes.push_back(fmt::format("xccl-synth {}: {}", origin.version, origin.command));
  return svg::PlotNotes(notes, y);
}

}  // namespace

std::string ComparisonSvg(const Comparison& comparison, const Origin& origin) {
  const std::vector<EngineLine> lines = EngineLines(comparison);
  const std::string times_of = !TimesOfMachines(comparison).empty() ? "Simulated times"
                               : comparison.on.machine.empty()
                                   ? "Times of schedules on ideal links"
                                   : "Times of programs on " + comparison.on.machine;
  std::string body = svg::PlotTitle(comparison.title, times_of);
  const bool one_size = std::ranges::all_of(lines, [&](const EngineLine& line) {
    return line.points.size() == 1 && line.points[0].size_bytes == lines[0].points[0].size_bytes;
  });
  std::vector<size_t> order(lines.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return lines[i].points.front().time_ps; });
  double left = kPlot.margin;
  for (const Measure& measure : Measures()) {
    body += one_size ? Rows(lines, order, measure, left) : Plot(lines, measure, left);
    left += PlotWidth();
  }
  double y = kPlot.top + 48 + (one_size ? kPlot.row * static_cast<double>(order.size()) : kPlot.height);
  body += Notes(lines, comparison, origin, y);
  return svg::Document(kPlot.width, y + 6, comparison.title, body);
}

}  // namespace xccl
