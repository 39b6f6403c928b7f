// Two parts. Panels: the machine once for each step, with what moves in that step drawn as arrows along
// their paths. Timeline: a row for each link, time to the right; bars are messages, the colour their step.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"
#include "draw/draw.h"
#include "draw/svg.h"

namespace xccl {
namespace {

constexpr int32_t kMostPanels = 12;
constexpr size_t kMostPanelItems = 48;
constexpr size_t kMostRows = 64;
constexpr size_t kMostBars = 20'000;
constexpr double kLeft = 24;

// A sequence of colours from early to late, of rising lightness (after the viridis map).
std::string StepColour(int32_t step, int32_t steps) {
  constexpr std::array<std::array<double, 3>, 5> kStops = {
      {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {222, 184, 20}}};
  const double at = steps > 1 ? 4.0 * step / (steps - 1) : 1;
  const auto i = static_cast<size_t>(std::min(3.0, std::floor(at)));
  std::string text = "#";
  for (size_t c = 0; c < 3; ++c)
    text += fmt::format("{:02x}",
                        static_cast<int>(std::lround(kStops[i][c] + (at - static_cast<double>(i)) *
                                                                        (kStops[i + 1][c] - kStops[i][c]))));
  return text;
}

// A step of ticks that people like: 1, 2 or 5 times a power of ten, about eight of them.
int64_t TickPs(int64_t time_ps) {
  int64_t tick = 1;
  while (tick * 10 < time_ps / 8) tick *= 10;
  for (const int64_t by : {1, 2, 5, 10})
    if (tick * by * 10 >= time_ps) return tick * by;
  return tick * 10;
}

class ScheduleDrawer {
 public:
  ScheduleDrawer(const Topology& topology, const MachineLayout& layout, const ScheduleTrace& trace,
                 const ScheduleDrawing& drawing)
      : topology_(topology), layout_(layout), trace_(trace), drawing_(drawing) {
    for (const TracedMessage& message : trace.messages) steps_ = std::max(steps_, message.step + 1);
  }

  std::string Draw() {
    body_ += svg::Text(kLeft, 32, "start", 18, "#111111", drawing_.title, "font-weight=\"bold\"");
    std::string facts = fmt::format("{} in the {} model; {} steps, {} messages",
                                    FormatDurationShort(trace_.simulation.time_ps), drawing_.model, steps_,
                                    trace_.messages.size());
    if (trace_.copies > 1) facts += fmt::format("; each stands for {} alike", trace_.copies);
    if (drawing_.bound_ps > 0)
      facts += fmt::format("; no plan is faster than {}", FormatDurationShort(drawing_.bound_ps));
    body_ += svg::Text(kLeft, 52, "start", 13, "#444444", facts);
    y_ = 66;
    width_ = std::max(width_, 48 + 6.9 * static_cast<double>(facts.size()));
    if (steps_ <= kMostPanels && layout_.items.size() <= kMostPanelItems && trace_.copies == 1) Panels();
    Timeline();
    StepLegend();
    return svg::Document(width_ + kLeft, y_, drawing_.title, Marker() + body_);
  }

 private:
  // ---- Panels ----

  static std::string Marker() {
    return "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" "
           "markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\"><path d=\"M0 0 "
           "L8 4 L0 8 Z\" "
           "fill=\"context-stroke\"/></marker></defs>\n";
  }

  void Panels() {
    const double scale = std::min(1.0, 560 / layout_.width);
    const double w = layout_.width * scale + 12, h = layout_.height * scale + 26;
    const int32_t columns = std::max(1, std::min(steps_, static_cast<int32_t>(1180 / w)));
    for (int32_t step = 0; step < steps_; ++step) {
      const int32_t row = step / columns;
      const double x = kLeft + w * (step % columns), y = y_ + h * row;
      body_ += svg::Text(x + 4, y + 16, "start", 13, "#222222", fmt::format("step {}", step));
      body_ += fmt::format("<g transform=\"translate({} {}) scale({})\">\n", svg::Number(x),
                           svg::Number(y + 20), svg::Number(scale));
      body_ += svg::Frames(layout_);
      for (const DrawnCable& cable : layout_.cables)
        body_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#dddddd\"/>\n", svg::PathOf(cable));
      body_ += Arrows(step) + svg::Items(layout_, topology_) + "</g>\n";
    }
    width_ = std::max(width_, kLeft + w * columns);
    const int32_t rows = (steps_ + columns - 1) / columns;
    y_ += h * rows + 12;
  }

  // One arrow for each cable and direction that the step uses, wider for more bytes.
  std::string Arrows(int32_t step) const {
    std::map<std::pair<int32_t, bool>, int64_t> bytes;
    int64_t most = 1;
    for (const TracedHop& hop : trace_.hops) {
      const TracedMessage& message = trace_.messages[static_cast<size_t>(hop.message)];
      const int32_t cable = layout_.cable_of_link[hop.link.index()];
      if (message.step != step || cable < 0) continue;
      const bool forward = layout_.item_of_node[topology_.link(hop.link).from.index()] ==
                           layout_.cables[static_cast<size_t>(cable)].a;
      int64_t& sum = bytes[{cable, forward}];
      sum += message.bytes;
      most = std::max(most, sum);
    }
    std::string text;
    for (const auto& [key, sum] : bytes) {
      const DrawnCable& cable = layout_.cables[static_cast<size_t>(key.first)];
      const bool both = bytes.contains({key.first, !key.second});
      text += fmt::format(
          "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" marker-{}=\"url(#head)\"/>\n",
          Arrow(cable, key.second, both), StepColour(step, steps_),
          svg::Number(1.4 + 2 * std::sqrt(static_cast<double>(sum) / static_cast<double>(most))), "end");
    }
    return text;
  }

  // The cable's line from edge to edge of its items, moved aside where both directions are drawn.
  std::string Arrow(const DrawnCable& cable, bool forward, bool both) const {
    std::vector<DrawnPoint> p = cable.points;
    if (cable.form == DrawnCable::Form::kStubs)
      p = forward ? std::vector{p[0], p[1]} : std::vector{p[3], p[2]};
    if (!forward && cable.form != DrawnCable::Form::kStubs) std::ranges::reverse(p);
    const DrawnItem& from = layout_.items[static_cast<size_t>(forward ? cable.a : cable.b)];
    const DrawnItem& to = layout_.items[static_cast<size_t>(forward ? cable.b : cable.a)];
    const double dx = p.back().x - p.front().x, dy = p.back().y - p.front().y;
    const double length = std::max(1.0, std::hypot(dx, dy)), aside = both ? 4 : 0;
    for (DrawnPoint& point : p) point = {point.x - dy / length * aside, point.y + dx / length * aside};
    const DrawnPoint second = p[1], last_but_one = p[p.size() - 2];
    p.front() = Edge(from, p.front(), second);
    if (cable.form != DrawnCable::Form::kStubs) p.back() = Edge(to, p.back(), last_but_one);
    const auto at = [&](const DrawnPoint& point) {
      return svg::Number(point.x) + " " + svg::Number(point.y);
    };
    if (cable.form == DrawnCable::Form::kCurve) return "M" + at(p[0]) + " Q" + at(p[1]) + " " + at(p[2]);
    return "M" + at(p.front()) + " L" + at(p.back());
  }
  // Where the line from `point` towards another leaves the item.
  static DrawnPoint Edge(const DrawnItem& item, DrawnPoint point, DrawnPoint towards) {
    const double dx = towards.x - point.x, dy = towards.y - point.y;
    double t = 1;
    if (dx != 0) t = std::min(t, std::max((item.x - point.x) / dx + item.width / 2 / std::abs(dx), 0.0));
    if (dy != 0) t = std::min(t, std::max((item.y - point.y) / dy + item.height / 2 / std::abs(dy), 0.0));
    t = std::min(t, 0.45);
    return {point.x + dx * t, point.y + dy * t};
  }

  // ---- Timeline ----

  struct Bar {
    LinkId link;
    int32_t message;
    int64_t start_ps, end_ps;
  };

  std::vector<Bar> Bars() const {
    std::vector<Bar> bars;
    if (!trace_.slices.empty() && trace_.slices.size() <= kMostBars) {
      for (const TracedSlice& slice : trace_.slices) {
        const TracedHop& hop = trace_.hops[static_cast<size_t>(slice.hop)];
        bars.push_back({hop.link, hop.message, slice.start_ps, slice.end_ps});
      }
    } else {
      for (const TracedHop& hop : trace_.hops)
        bars.push_back({hop.link, hop.message, hop.start_ps, hop.end_ps});
    }
    return bars;
  }

  // The links of the critical path and, as far as there is room, the busiest of the others: the busiest
  // first.
  std::vector<LinkId> Rows(std::map<LinkId, int64_t>& busy) const {
    for (const TracedHop& hop : trace_.hops) busy[hop.link] += hop.busy_ps;
    std::set<LinkId> on_path;
    for (const PathPiece& piece : trace_.critical_path.pieces)
      if (piece.link && busy.contains(*piece.link)) on_path.insert(*piece.link);
    std::vector<LinkId> rows;
    for (const auto& [link, ps] : busy) rows.push_back(link);
    std::ranges::stable_sort(rows, [&](LinkId a, LinkId b) {
      return std::pair(on_path.contains(a), busy[a]) > std::pair(on_path.contains(b), busy[b]);
    });
    if (rows.size() > kMostRows) rows.resize(kMostRows);
    std::ranges::stable_sort(rows, [&](LinkId a, LinkId b) { return busy[a] > busy[b]; });
    return rows;
  }

  void Timeline() {
    std::map<LinkId, int64_t> busy;
    const std::vector<LinkId> rows = Rows(busy);
    if (rows.empty()) return;
    double name_width = 60;
    for (const LinkId link : rows)
      name_width = std::max(name_width, 6.4 * static_cast<double>(topology_.LinkName(link).size()));
    name_width = std::min(name_width, 260.0);
    const double left = kLeft + name_width + 8, right = std::max(width_, left + 720) - 56;
    const double row = rows.size() > 40 ? 13 : 18;
    const int64_t time_ps = std::max<int64_t>(1, trace_.simulation.time_ps);
    const auto x = [&](int64_t ps) {
      return left + (right - left) * static_cast<double>(ps) / static_cast<double>(time_ps);
    };
    body_ += svg::Text(
        kLeft, y_ + 14, "start", 13, "#222222",
        rows.size() < busy.size()
            ? fmt::format("{} of {} links: the critical path's and the busiest", rows.size(), busy.size())
            : std::string("links"));
    body_ += svg::Text(right + 8, y_ + 14, "start", 11, "#666666", "busy");
    const double top = y_ + 22, bottom = top + row * static_cast<double>(rows.size());
    Ticks(x, top, bottom, time_ps);
    std::map<LinkId, double> place;
    for (size_t r = 0; r < rows.size(); ++r) {
      const double y = top + row * static_cast<double>(r);
      place[rows[r]] = y;
      body_ += svg::Text(left - 6, y + row * 0.72, "end", std::min(11.0, row - 3), "#333333",
                         topology_.LinkName(rows[r]));
      body_ += svg::Line(left, y + row, right, y + row, "stroke=\"#eeeeee\"");
      body_ += svg::Text(
          right + 8, y + row * 0.72, "start", std::min(11.0, row - 3), "#666666",
          fmt::format("{:.0f}%", 100 * static_cast<double>(busy[rows[r]]) / static_cast<double>(time_ps)));
    }
    std::map<LinkId, std::vector<Bar>> bars_of;
    for (const Bar& bar : Bars())
      if (place.contains(bar.link)) bars_of[bar.link].push_back(bar);
    for (auto& [link, bars] : bars_of) DrawBars(bars, x, place[link] + 2, row - 4);
    CriticalPath(x, place, row);
    if (drawing_.bound_ps > 0 && drawing_.bound_ps <= time_ps) {
      body_ += svg::Line(x(drawing_.bound_ps), top - 4, x(drawing_.bound_ps), bottom,
                         "stroke=\"#000000\" stroke-dasharray=\"5 3\"");
      body_ += svg::Text(x(drawing_.bound_ps) - 4, top - 8, "end", 11, "#000000", "lower bound");
    }
    width_ = std::max(width_, right + 56);
    y_ = bottom + 30;
  }

  // Draws the bars of one link. Bars that are too thin and too close to be told apart become one bar, in the
  // colour of the step that takes most of it.
  template <typename X>
  void DrawBars(std::vector<Bar>& bars, X x, double y, double height) {
    constexpr double kThin = 4, kHairline = 1.5, kApart = 0.5, kMostJoined = 24;  // pixels
    std::ranges::stable_sort(bars, {}, &Bar::start_ps);
    const auto width = [&](const Bar& bar) { return x(bar.end_ps) - x(bar.start_ps); };
    for (size_t i = 0; i < bars.size();) {
      const double left = x(bars[i].start_ps);
      double right = x(bars[i].end_ps);
      // Bars of one step are joined if they are thin, bars of several steps only if they are hairlines.
      const auto joins = [&](const Bar& bar) {
        const double most = StepOf(bar) == StepOf(bars[i]) ? kThin : kHairline;
        return width(bars[i]) < most && width(bar) < most && x(bar.start_ps) - right <= kApart &&
               right - left < kMostJoined;
      };
      size_t next = i + 1;
      for (; next < bars.size() && joins(bars[next]); ++next) right = std::max(right, x(bars[next].end_ps));
      const double w = std::max(0.4, right - left);
      const auto [step, said] = Said(std::span(bars).subspan(i, next - i));
      body_ += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"{}><title>{}</title></rect>\n",
          svg::Number(left), svg::Number(y), svg::Number(w), svg::Number(height), StepColour(step, steps_),
          w > 3 ? " stroke=\"#ffffff\" stroke-width=\"0.5\"" : "", svg::Escaped(said));
      i = next;
    }
  }

  int32_t StepOf(const Bar& bar) const { return trace_.messages[static_cast<size_t>(bar.message)].step; }

  // The step that takes most of the bars' time, and what they move.
  std::pair<int32_t, std::string> Said(std::span<const Bar> bars) const {
    std::map<int32_t, int64_t> time_of;  // by step
    std::set<int32_t> messages;
    int64_t bytes = 0;
    for (const Bar& bar : bars) {
      const TracedMessage& message = trace_.messages[static_cast<size_t>(bar.message)];
      time_of[message.step] += bar.end_ps - bar.start_ps;
      if (messages.insert(bar.message).second) bytes += message.bytes;
    }
    const int32_t step =
        std::ranges::max_element(time_of, {}, [](const auto& each) { return each.second; })->first;
    const TracedMessage& first = trace_.messages[static_cast<size_t>(bars.front().message)];
    if (messages.size() == 1)
      return {step, fmt::format("{} to {}, step {}, {}", first.src.value, first.dst.value, first.step,
                                FormatSize(first.bytes))};
    const std::string steps =
        time_of.size() == 1 ? fmt::format("step {}", step)
                            : fmt::format("steps {} to {}", time_of.begin()->first, time_of.rbegin()->first);
    return {step, fmt::format("{} messages of {}, {}", messages.size(), steps, FormatSize(bytes))};
  }

  // A transfer of the critical path underlines the link's bar; a latency is a dashed line.
  template <typename X>
  void CriticalPath(X x, const std::map<LinkId, double>& place, double row) {
    for (const PathPiece& piece : trace_.critical_path.pieces) {
      const auto at = piece.link ? place.find(*piece.link) : place.end();
      if (at == place.end()) continue;
      const std::string_view style = piece.kind == PathKind::kLatency
                                         ? "stroke=\"#d00000\" stroke-width=\"1.6\" stroke-dasharray=\"2 2\""
                                         : "stroke=\"#d00000\" stroke-width=\"2.4\"";
      const double y = at->second + row - 1.5, from = x(piece.start_ps);
      body_ += svg::Line(from, y, std::max(x(piece.end_ps), from + 1), y, style);
      has_path_ = true;
    }
  }

  template <typename X>
  void Ticks(X x, double top, double bottom, int64_t time_ps) {
    const int64_t tick = TickPs(time_ps);
    for (int64_t at = 0; at <= time_ps; at += tick) {
      body_ += svg::Line(x(at), top, x(at), bottom, "stroke=\"#e4e4e4\"");
      body_ += svg::Text(x(at), bottom + 14, "middle", 11, "#555555", FormatDurationShort(at));
    }
  }

  void StepLegend() {
    y_ += 12;
    double x = kLeft;
    body_ += svg::Text(x, y_, "start", 12, "#333333", "step");
    x += 34;
    const int32_t shown = std::min(steps_, 16);
    for (int32_t i = 0; i < shown; ++i) {
      const int32_t step = steps_ <= 16 ? i : static_cast<int32_t>(int64_t{i} * (steps_ - 1) / 15);
      body_ += svg::Rect(x, y_ - 10, 12, 12, fmt::format("fill=\"{}\"", StepColour(step, steps_)));
      body_ += svg::Text(x + 15, y_, "start", 11, "#333333", fmt::format("{}", step));
      x += 24 + 7 * static_cast<double>(fmt::format("{}", step).size());
    }
    if (has_path_) {
      body_ += svg::Line(x + 12, y_ - 4, x + 36, y_ - 4, "stroke=\"#d00000\" stroke-width=\"2.4\"");
      body_ += svg::Text(x + 42, y_, "start", 12, "#333333", "critical path (dashed: latency)");
    }
    width_ = std::max(width_, x + 42 + 200);
    y_ += 20;
  }

  const Topology& topology_;
  const MachineLayout& layout_;
  const ScheduleTrace& trace_;
  const ScheduleDrawing& drawing_;
  int32_t steps_ = 0;
  bool has_path_ = false;  // whether a piece of the critical path is drawn
  std::string body_;
  double y_ = 0, width_ = 640;
};

}  // namespace

std::string ScheduleSvg(const Topology& topology, const MachineLayout& layout, const ScheduleTrace& trace,
                        const ScheduleDrawing& drawing) {
  return ScheduleDrawer(topology, layout, trace, drawing).Draw();
}

}  // namespace xccl
