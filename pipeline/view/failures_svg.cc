// 1. Take the rows of engines at the largest size. Bars show auto, or else the first engine.
// 2. Sort the failures by the time ÷ bound of the engine with bars, and drop duplicates.
// 3. Draw the legend, the axis and a row for each failure: a bar, a dot for each other engine, and a line
//    for the bound, at 1. The axis is linear and begins at 0, so that a bar's length is proportional to its
//    value.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/units.h"
#include "draw/plot.h"
#include "draw/svg.h"
#include "pipeline/view/failures.h"
#include "synth/common/synthesizer.h"

namespace xccl {
namespace {

using svg::kPlot;

// Return the pixels at which the axis begins, to the right of the names of failures, and ends.
double Left() { return kPlot.margin + kPlot.letter * static_cast<double>(kPlot.name_letters); }
double Right() { return kPlot.width - kPlot.labels; }

struct Picture {
  const FailureComparison& comparison;
  std::vector<const FailureTimes*> rows;  // one per engine, at the largest size; the first is drawn as bars
  std::vector<size_t> draws;              // distinct failures, the costliest first
  size_t left_out = 0;                    // number of distinct failures without a row
  double most = 1;
  double At(double ratio) const { return Left() + ratio / most * (Right() - Left()); }
  // Returns the engine's time on a damaged machine ÷ the lower bound of that machine, if both are known. The
  // bound is the same for all engines, so that their values can be compared.
  std::optional<double> OverBound(const FailureTimes& row, size_t draw) const {
    const auto at = std::ranges::find(comparison.bounds, row.size_bytes, &FailureBounds::size_bytes);
    if (at == comparison.bounds.end() || at->draw_us[draw] <= 0 || !row.draw_us[draw]) return std::nullopt;
    return *row.draw_us[draw] / at->draw_us[draw];
  }
};

Picture PictureOf(const FailureComparison& comparison) {
  Picture picture{.comparison = comparison, .rows = {}, .draws = {}};
  int64_t size = 0;
  for (const FailureTimes& row : comparison.times) size = std::max(size, row.size_bytes);
  for (const FailureTimes& row : comparison.times)
    if (row.size_bytes == size) picture.rows.push_back(&row);
  std::ranges::stable_sort(picture.rows, {},
                           [](const FailureTimes* row) { return row->engine != kDefaultEngine; });
  std::set<std::string> seen;
  for (size_t d = 0; d < comparison.failed.size(); ++d)
    if (seen.insert(comparison.failed[d]).second) picture.draws.push_back(d);
  std::ranges::stable_sort(picture.draws, std::greater<>(), [&](size_t d) {
    return picture.OverBound(*picture.rows[0], d).value_or(HUGE_VAL);  // failures without a plan come first
  });
  if (picture.draws.size() > kPlot.most_rows) {
    picture.left_out = picture.draws.size() - kPlot.most_rows;
    picture.draws.resize(kPlot.most_rows);
  }
  for (const size_t d : picture.draws)
    for (const FailureTimes* row : picture.rows)
      picture.most = std::max(picture.most, picture.OverBound(*row, d).value_or(0));
  return picture;
}

std::string_view ColourOf(size_t row) { return svg::SeriesColour(std::min(row, svg::kNumSeries - 1)); }

std::string Dot(double x, double y, std::string_view colour) {
  return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\" stroke=\"#ffffff\"/>\n", svg::Number(x),
                     svg::Number(y), colour);
}

// Draws the names of the engines and of the bound in a line above the rows.
std::string Legend(const Picture& picture) {
  std::string text;
  double x = kPlot.margin;
  const double y = kPlot.top - 40;
  const auto word = [&](std::string_view name, std::string_view colour) {
    text += svg::Text(x + 20, y + 4, "start", 12, colour, name);
    x += 40 + kPlot.letter * static_cast<double>(name.size());
  };
  for (size_t r = 0; r < picture.rows.size(); ++r) {
    if (x > kPlot.width - 160) break;
    text += r == 0 ? svg::Rect(x, y - 6, 14, 12, fmt::format("fill=\"{}\"", ColourOf(r)))
                   : Dot(x + 7, y, ColourOf(r));
    word(picture.rows[r]->engine, ColourOf(r));
  }
  text += svg::Line(x + 7, y - 8, x + 7, y + 8, fmt::format("stroke=\"{}\" stroke-width=\"2\"", kPlot.ink));
  word("lower bound of the machine that is left", kPlot.ink);
  return text;
}

std::string Axis(const Picture& picture, double bottom) {
  std::string text;
  const double step = picture.most < 3 ? 0.5 : std::pow(10, std::floor(std::log10(picture.most)));
  for (double at = 0; at <= picture.most * 1.0001; at += step) {
    text += svg::Line(picture.At(at), kPlot.top, picture.At(at), bottom,
                      fmt::format("stroke=\"{}\"", at == 1 ? kPlot.soft : kPlot.grid));
    text += svg::Text(picture.At(at), kPlot.top - 6, "middle", 11, kPlot.soft, fmt::format("{:.3g}", at));
  }
  return text + svg::Text(Right() + 16, kPlot.top - 6, "start", 11, kPlot.ink, picture.rows[0]->engine);
}

std::string Row(const Picture& picture, size_t draw, double y) {
  const FailureTimes& main = *picture.rows[0];
  const std::string name = svg::FittedName(picture.comparison.failed[draw], kPlot.name_letters);
  std::string text = svg::Text(Left() - 8, y + 4, "end", 12, kPlot.ink, name);
  const std::optional<double> ratio = picture.OverBound(main, draw);
  if (ratio)
    text += svg::Rect(Left(), y - 7, picture.At(*ratio) - Left(), 14,
                      fmt::format("fill=\"{}\" fill-opacity=\"0.75\"", ColourOf(0)));
  for (size_t r = 1; r < picture.rows.size(); ++r) {
    const std::optional<double> other = picture.OverBound(*picture.rows[r], draw);
    if (!other) continue;
    text += Dot(picture.At(*other), y, ColourOf(r));
  }
  text += svg::Line(picture.At(1), y - 9, picture.At(1), y + 9,
                    fmt::format("stroke=\"{}\" stroke-width=\"2\"", kPlot.ink));
  const std::string said =
      ratio ? fmt::format("{:.2f}, {}", *ratio, FormatDurationShort(std::llround(*main.draw_us[draw] * 1e6)))
            : std::string("no plan");
  return text + svg::Text(Right() + 16, y + 4, "start", 11, kPlot.ink, said);
}

}  // namespace

std::string FailuresSvg(const FailureComparison& comparison, const Origin& origin) {
  const Picture picture = PictureOf(comparison);
  const FailureTimes& main = *picture.rows[0];
  std::string body = svg::PlotTitle(
      comparison.title, fmt::format("Time over the lower bound of the machine that is left, at {}",
                                    FormatSize(main.size_bytes)));
  const double bottom = kPlot.top + kPlot.row * static_cast<double>(picture.draws.size());
  body += Legend(picture) + Axis(picture, bottom);
  double y = kPlot.top + kPlot.row / 2;
  for (const size_t draw : picture.draws) {
    body += Row(picture, draw, y);
    y += kPlot.row;
  }
  y = bottom + 22;
  std::vector<std::string> notes;
  if (picture.left_out > 0) notes.push_back(fmt::format("and {} failures that cost less", picture.left_out));
  notes.emplace_back("Times of schedules on ideal links");
  notes.push_back(fmt::format("xccl-synth {}: {}", origin.version, origin.command));
  body += svg::PlotNotes(notes, y);
  return svg::Document(kPlot.width, y + 6, comparison.title, body);
}

}  // namespace xccl
