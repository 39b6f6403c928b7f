// 1. Choose the axes' ends and ticks: a logarithmic axis begins and ends at 1, 2 or 5 times a power of ten,
// the
//    axis of sizes at the first and the last size; all other axes begin at 0.
// 2. Give the texts their room: numbers left of the plot and below it, the legend in rows below the numbers.
// 3. Draw grid, lines, marks and legend, or a row for each name.
#include "draw/figure.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/strings.h"
#include "draw/plot.h"
#include "draw/svg.h"

namespace xccl {
namespace {

using svg::kPlot;

constexpr double kLine = 1.25;  // from one line of text to the next, in fonts

// The room that a text needs in a sans-serif font, in fonts. Wide fonts need no more.
double TextRoom(std::string_view text) {
  double room = 0;
  for (const char c : text) {
    if ((c & 0xC0) == 0x80) continue;  // within a character
    if (std::string_view("il.,:;'|!j ").find(c) != std::string_view::npos) {
      room += 0.38;
    } else if (std::string_view("mwMW@%").find(c) != std::string_view::npos) {
      room += 0.98;
    } else {
      room += c >= 'A' && c <= 'Z' ? 0.76 : 0.64;
    }
  }
  return room;
}

// The text in lines of at most `room` fonts, broken at spaces where there are some.
std::vector<std::string> Broken(const std::string& text, double room) {
  std::vector<std::string> lines = {""};
  for (const char c : text) {
    std::string& line = lines.back();
    line += c;
    if ((c & 0xC0) == 0x80 || TextRoom(line) <= room) continue;
    const size_t space = line.rfind(' ');
    const size_t at = space == std::string::npos || space + 1 == line.size() ? line.size() - 1 : space + 1;
    std::string rest = line.substr(at);
    line.resize(at);
    lines.push_back(std::move(rest));
  }
  return lines;
}

struct Scale {
  double low = 0, high = 1, from = 0, to = 1;
  bool logarithmic = false;
  std::vector<double> ticks = {};
  double At(double value) const {
    const double part =
        logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + part * (to - from);
  }
};

Scale LogScale(double low, double high) {
  constexpr std::array kSteps = {1.0, 2.0, 5.0};
  Scale scale{.low = low, .high = high, .logarithmic = true};
  std::vector<double> all;
  for (double power = std::pow(10, std::floor(std::log10(low))); all.empty() || all.back() < high;
       power *= 10)
    for (const double step : kSteps) all.push_back(step * power);
  const auto first = std::ranges::upper_bound(all, low * 1.000001) - 1;
  auto last = std::ranges::lower_bound(all, high * 0.999999);
  if (last == first) ++last;
  scale.low = *first;
  scale.high = *last;
  const bool few = scale.high / scale.low < 300;
  for (auto tick = first; tick <= last; ++tick)
    if (few || (tick - all.begin()) % 3 == 0) scale.ticks.push_back(*tick);
  return scale;
}

Scale ScaleFromZero(double high) {
  const double power = std::pow(10, std::floor(std::log10(high)));
  const double step = power * (high / power <= 2 ? 0.5 : high / power <= 5 ? 1 : 2);
  Scale scale{.high = step * std::ceil(high / step - 1e-9)};
  for (int i = 0; i * step <= scale.high * 1.000001; ++i) scale.ticks.push_back(i * step);
  return scale;
}

// The ticks whose labels are shown: every n-th with the least n at which none overlap.
std::vector<double> Labelled(const Scale& scale, const std::function<double(double)>& room) {
  for (size_t every = 1; every < scale.ticks.size(); ++every) {
    std::vector<double> kept;
    for (size_t i = 0; i < scale.ticks.size(); i += every) kept.push_back(scale.ticks[i]);
    bool fits = true;
    for (size_t i = 0; i + 1 < kept.size(); ++i)
      fits &= std::abs(scale.At(kept[i + 1]) - scale.At(kept[i])) >= (room(kept[i]) + room(kept[i + 1])) / 2;
    if (fits) return kept;
  }
  return {scale.ticks.front()};
}

class FigureDrawer {
 public:
  FigureDrawer(const Figure& figure, const FigureSize& size)
      : figure_(figure), font_(size.font_pt), width_(size.width_pt) {
    size_t marked = 0;
    for (const FigureLine& line : figure.lines)
      mark_of_.push_back(line.is_first_choice || line.is_grey ? 0 : ++marked);
  }

  std::string Draw() {
    FindRange();
    y_ = font_;
    Say(0, y_, "start", TitleOf(figure_.y), kPlot.ink, "font-weight=\"bold\"");
    y_ += font_;
    if (sizes_.size() <= 1) {
      DrawRows();
    } else {
      DrawLines();
      DrawLegend();
    }
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}pt\" height=\"{1}pt\" viewBox=\"0 0 {0} {1}\" "
        "role=\"img\" font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">\n<title>{2}</title>\n"
        "<desc>{3}</desc>\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{4}</svg>\n",
        svg::Number(width_), svg::Number(y_), svg::Escaped(figure_.title), svg::Escaped(figure_.description),
        body_);
  }

 private:
  void FindRange() {
    low_ = std::numeric_limits<double>::infinity();
    for (const FigureLine& line : figure_.lines)
      for (const auto& [x, y] : line.points) {
        if (!(x > 0 && y > 0)) continue;
        sizes_.push_back(x);
        low_ = std::min(low_, y);
        high_ = std::max(high_, y);
      }
    if (sizes_.empty()) low_ = high_ = 1;
    std::ranges::sort(sizes_);
    sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
    if (sizes_.size() <= 1)
      is_log_ = high_ > 30 * low_;
    else
      is_log_ = figure_.y.logarithmic;
  }

  std::string TitleOf(const FigureAxis& axis) const {
    return axis.title + (&axis == &figure_.x || is_log_ ? " (log scale)" : " (from 0)");
  }
  std::string Label(double value) const { return value == 0 ? "0" : figure_.y.show(value); }
  double Room(const std::string& text) const { return TextRoom(text) * font_; }

  void Say(double x, double y, std::string_view anchor, const std::string& text, std::string_view fill,
           std::string_view more = "") {
    body_ += svg::Text(x, y, anchor, font_, fill, text, more);
  }
  void Stroke(double x1, double y1, double x2, double y2, std::string_view colour, double fonts) {
    body_ += svg::Line(x1, y1, x2, y2,
                       fmt::format("stroke=\"{}\" stroke-width=\"{}\"", colour, svg::Number(fonts * font_)));
  }

  std::string_view ColourOf(size_t i) const {
    const FigureLine& line = figure_.lines[i];
    if (line.is_grey) return kPlot.grey;
    return line.is_first_choice ? kPlot.ink : svg::SeriesColour(mark_of_[i] - 1);
  }

  // A mark of one of eight shapes; with the colours, 56 lines differ. Grey lines have none.
  void Mark(double x, double y, size_t i) {
    if (figure_.lines[i].is_grey) return;
    const double r = 0.3 * font_;
    const auto shape = [&](std::initializer_list<std::pair<double, double>> corners) {
      std::string path;
      for (const auto& [dx, dy] : corners)
        path += fmt::format("{}{} {}", path.empty() ? "M" : " L", svg::Number(x + dx * r),
                            svg::Number(y + dy * r));
      body_ += fmt::format("<path d=\"{} Z\" fill=\"{}\"/>\n", path, ColourOf(i));
    };
    const auto cross = [&](double a, double b) {
      Stroke(x - a * r, y - b * r, x + a * r, y + b * r, ColourOf(i), 0.16);
      Stroke(x - b * r, y + a * r, x + b * r, y - a * r, ColourOf(i), 0.16);
    };
    const std::string circle =
        fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"", svg::Number(x), svg::Number(y), svg::Number(r));
    if (mark_of_[i] == 0 || mark_of_[i] % 8 == 7) {
      body_ += fmt::format("{} fill=\"#ffffff\" stroke=\"{}\" stroke-width=\"{}\"/>\n", circle, ColourOf(i),
                           svg::Number(0.14 * font_));
      return;
    }
    switch (mark_of_[i] % 8) {
      case 1:
        return shape({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}});
      case 2:
        return shape({{0, -1.2}, {1.1, 0.9}, {-1.1, 0.9}});
      case 3:
        return shape({{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}});
      case 4:
        return shape({{0, 1.2}, {1.1, -0.9}, {-1.1, -0.9}});
      case 5:
        return cross(1, 1);
      case 6:
        return cross(0, 1.2);
      default:
        body_ += fmt::format("{} fill=\"{}\"/>\n", circle, ColourOf(i));
    }
  }

  void LineOf(const std::vector<std::pair<double, double>>& points, size_t i) {
    const FigureLine& line = figure_.lines[i];
    std::string path;
    for (const auto& [x, y] : points)
      path += fmt::format("{}{} {}", path.empty() ? "M" : " L", svg::Number(x), svg::Number(y));
    body_ += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{}/>\n",
        path, ColourOf(i),
        svg::Number((line.is_first_choice ? 0.22
                     : line.is_grey       ? 0.06
                                          : 0.12) *
                    font_),
        line.is_dashed ? fmt::format(" stroke-dasharray=\"{0} {0}\"", svg::Number(0.5 * font_)) : "");
  }

  void DrawLines() {
    Scale y = is_log_ ? LogScale(low_, high_) : ScaleFromZero(high_);
    y.to = y_;
    y.from = y_ + std::max(0.55 * width_, 10 * font_);
    double numbers = 0, last = 0;
    for (const double tick : y.ticks) numbers = std::max(numbers, Room(Label(tick)));
    for (const double size : sizes_) last = std::max(last, Room(figure_.x.show(size)));
    Scale x{.low = sizes_.front(), .high = sizes_.back(), .logarithmic = true, .ticks = sizes_};
    x.from = std::max(numbers + 0.6 * font_, last / 2);
    x.to = width_ - last / 2;
    for (const double tick : y.ticks) Stroke(x.from, y.At(tick), x.to, y.At(tick), kPlot.grid, 0.06);
    for (const double tick : Labelled(y, [&](double) { return kLine * font_; }))
      Say(x.from - 0.5 * font_, y.At(tick) + 0.35 * font_, "end", Label(tick), kPlot.ink);
    for (const double size : sizes_)
      Stroke(x.At(size), y.from, x.At(size), y.from + 0.3 * font_, kPlot.soft, 0.06);
    for (const double size :
         Labelled(x, [&](double value) { return Room(figure_.x.show(value)) + 0.5 * font_; }))
      Say(x.At(size), y.from + 1.4 * font_, "middle", figure_.x.show(size), kPlot.ink);
    Stroke(x.from, y.from, x.to, y.from, kPlot.soft, 0.08);
    Say((x.from + x.to) / 2, y.from + 2.8 * font_, "middle", TitleOf(figure_.x), kPlot.ink,
        "font-weight=\"bold\"");
    // Later lines are drawn over earlier ones: the grey ones first, the first choice below the rest.
    for (const bool grey : {true, false})
      for (size_t i = 0; i < figure_.lines.size(); ++i) {
        if (figure_.lines[i].is_grey != grey) continue;
        std::vector<std::pair<double, double>> points;
        for (const auto& [px, py] : figure_.lines[i].points)
          if (px > 0 && py > 0) points.emplace_back(x.At(px), y.At(py));
        if (points.empty()) continue;
        LineOf(points, i);
        for (const auto& [px, py] : points) Mark(px, py, i);
      }
    y_ = y.from + 4.5 * font_;
  }

  // Entries from left to right in as many rows as they need; an entry wider than the figure is broken.
  void DrawLegend() {
    constexpr double kSample = 2.4, kApart = 1.2;  // in fonts
    std::vector<std::string> grey;
    double x = 0;
    const auto entry = [&](const std::string& name, size_t i) {
      const double room = (kSample + kApart) * font_ + Room(name);
      if (x > 0 && x + room > width_) {
        x = 0;
        y_ += kLine * font_;
      }
      const double middle = y_ - 0.35 * font_;
      LineOf({{x, middle}, {x + 1.8 * font_, middle}}, i);
      Mark(x + 0.9 * font_, middle, i);
      const std::vector<std::string> lines = Broken(name, (width_ - x) / font_ - kSample);
      for (size_t l = 0; l < lines.size(); ++l) {
        y_ += l > 0 ? kLine * font_ : 0;
        Say(x + kSample * font_, y_, "start", lines[l], kPlot.ink);
      }
      x += room;
    };
    size_t a_grey = 0;
    for (size_t i = 0; i < figure_.lines.size(); ++i) {
      if (figure_.lines[i].is_grey) {
        grey.push_back(figure_.lines[i].name);
        a_grey = i;
      } else {
        entry(figure_.lines[i].name, i);
      }
    }
    if (!grey.empty()) entry("at no size the fastest: " + Join(grey, ", "), a_grey);
    y_ += 0.5 * font_;
  }

  // A row for each line. Names stand left of the rows, or over them where they are wide.
  void DrawRows() {
    double names = 0, values = 0;
    for (const FigureLine& line : figure_.lines) {
      names = std::max(names, Room(line.name));
      values = std::max(values, Room(figure_.y.show(ValueOf(line))));
    }
    const bool over = names > 0.4 * width_;
    Scale x = is_log_ ? LogScale(low_, high_) : ScaleFromZero(high_);
    double first = 0;
    for (const double tick : x.ticks) values = std::max(values, Room(Label(tick)) / 2);
    first = Room(Label(x.ticks.front())) / 2;
    x.from = over ? first : std::max(names + 0.6 * font_, first);
    x.to = width_ - values - 0.8 * font_;
    const double top = y_;
    std::string rows;
    std::swap(rows, body_);
    for (size_t i = 0; i < figure_.lines.size(); ++i) Row(i, x, over);
    std::swap(rows, body_);
    for (const double tick : x.ticks) Stroke(x.At(tick), top, x.At(tick), y_, kPlot.grid, 0.06);
    body_ += rows;
    Stroke(x.from, y_, x.to, y_, kPlot.soft, 0.08);
    for (const double tick : Labelled(x, [&](double value) { return Room(Label(value)) + 0.5 * font_; }))
      Say(x.At(tick), y_ + 1.3 * font_, "middle", Label(tick), kPlot.ink);
    y_ += 2 * font_;
  }

  static double ValueOf(const FigureLine& line) { return line.points.empty() ? 0 : line.points[0].second; }

  void Row(size_t i, const Scale& x, bool over) {
    const FigureLine& line = figure_.lines[i];
    const std::string_view more = line.is_first_choice ? "font-weight=\"bold\"" : "";
    if (over) {
      for (const std::string& part : Broken(line.name, width_ / font_)) {
        y_ += kLine * font_;
        Say(0, y_, "start", part, kPlot.ink, more);
      }
      y_ += 0.3 * font_;
    }
    const double middle = y_ + 0.7 * font_, value = ValueOf(line);
    if (!over) Say(x.from - 0.5 * font_, middle + 0.35 * font_, "end", line.name, kPlot.ink, more);
    y_ += 1.45 * font_;
    if (!(value > 0)) return;
    const std::string_view colour = line.is_first_choice ? kPlot.ink : kPlot.soft;
    if (is_log_) {
      body_ +=
          fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>\n", svg::Number(x.At(value)),
                      svg::Number(middle), svg::Number(0.32 * font_), line.is_dashed ? "#ffffff" : colour);
    } else {
      body_ += svg::Rect(x.from, middle - 0.45 * font_, x.At(value) - x.from, 0.9 * font_,
                         fmt::format("fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"",
                                     line.is_dashed         ? "#ffffff"
                                     : line.is_first_choice ? kPlot.ink
                                                            : kPlot.grey,
                                     colour, svg::Number(0.08 * font_)));
    }
    Say(x.At(value) + 0.6 * font_, middle + 0.35 * font_, "start", figure_.y.show(value), kPlot.ink, more);
  }

  const Figure& figure_;
  const double font_, width_;
  std::vector<size_t> mark_of_;  // by line; 0: the first choice, or grey
  std::vector<double> sizes_;
  double low_ = 0, high_ = 0;
  bool is_log_ = false;
  std::string body_;
  double y_ = 0;  // the end of what is drawn
};

}  // namespace

std::string FigureSvg(const Figure& figure, const FigureSize& size) {
  return FigureDrawer(figure, size).Draw();
}

}  // namespace xccl
