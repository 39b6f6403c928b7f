#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/units.h"
#include "base/wrap.h"
#include "draw/draw.h"
#include "draw/svg.h"

namespace xccl {
namespace {

// Links of one kind have a line of the legend: what they join, and how fast they are.
struct LinkKind {
  int64_t bandwidth_bytes_per_s = 0, latency_ps = 0;
  NodeKind from = NodeKind::kGpu, to = NodeKind::kGpu;  // the smaller first
  auto operator<=>(const LinkKind&) const = default;
};

LinkKind KindOf(const Topology& topology, LinkId l) {
  const Link& link = topology.link(l);
  const auto [from, to] = std::minmax(topology.node(link.from).kind, topology.node(link.to).kind);
  return {link.bandwidth_bytes_per_s, link.latency_ps, from, to};
}

class TopologyDrawer {
 public:
  TopologyDrawer(const Topology& topology, const MachineLayout& layout)
      : topology_(topology), layout_(layout) {
    std::map<LinkKind, int64_t> counts;
    for (int32_t l = 0; l < topology.num_links(); ++l) {
      ++counts[KindOf(topology, LinkId(l))];
      if (layout.cable_of_link[static_cast<size_t>(l)] >= 0) drawn_.insert(KindOf(topology, LinkId(l)));
    }
    kinds_.assign(counts.rbegin(), counts.rend());  // the fastest first
    for (size_t k = 0; k < kinds_.size(); ++k) series_[kinds_[k].first] = k;
  }

  std::string Draw() {
    const std::vector<std::string> source = WrapWords(topology_.spec().source, 110);
    const double head = 58 + 15 * static_cast<double>(source.size());
    std::string legend;
    double legend_width = 0;
    const double legend_height = Legend(legend, legend_width);
    double width = std::max({layout_.width, legend_width + 48, 420.0});
    for (const std::string& line : source)
      width = std::max(width, 48 + 6.2 * static_cast<double>(line.size()));
    const double left = (width - layout_.width) / 2;
    std::string body = svg::Text(24, 32, "start", 18, "#111111", topology_.name(), "font-weight=\"bold\"");
    body += svg::Text(24, 52, "start", 13, "#444444",
                      fmt::format("{} ranks: {}", topology_.num_ranks(), layout_.shape));
    for (size_t i = 0; i < source.size(); ++i)
      body += svg::Text(24, 70 + 15 * static_cast<double>(i), "start", 11, "#666666", source[i]);
    body += fmt::format("<g transform=\"translate({} {})\">\n", svg::Number(left), svg::Number(head));
    body += svg::Frames(layout_) + Cables() + svg::Items(layout_, topology_) + Counts() + "</g>\n";
    const double at = head + layout_.height;
    body += fmt::format("<g transform=\"translate(24 {})\">\n{}</g>\n", svg::Number(at), legend);
    return svg::Document(width, at + legend_height + 16, topology_.name() + ", " + layout_.shape, body);
  }

 private:
  // All links of a cable from one end; of a folded item, one of its links, or the lines would fill the page.
  int64_t Bandwidth(const DrawnCable& cable) const {
    for (const int32_t end : {cable.a, cable.b})
      if (layout_.items[static_cast<size_t>(end)].folded)
        return topology_.link(cable.links[0]).bandwidth_bytes_per_s;
    int64_t forward = 0, back = 0;
    for (const LinkId l : cable.links)
      (Forward(cable, l) ? forward : back) += topology_.link(l).bandwidth_bytes_per_s;
    return std::max(forward, back);
  }
  bool Forward(const DrawnCable& cable, LinkId l) const {
    return layout_.item_of_node[topology_.link(l).from.index()] == cable.a;
  }
  static double Width(int64_t bandwidth_bytes_per_s) {
    // 1 GB/s and less is one pixel wide; each factor of ten adds 1.8.
    return std::clamp(1 + 1.8 * std::log10(static_cast<double>(bandwidth_bytes_per_s) / 1e9), 1.0, 9.0);
  }

  std::string Cables() const {
    // Many thin lines are easier to read if they do not hide each other.
    const double opacity = layout_.cables.size() > 400 ? 0.45 : layout_.cables.size() > 120 ? 0.7 : 0.9;
    std::string text = fmt::format("<g fill=\"none\" stroke-opacity=\"{}\">\n", svg::Number(opacity));
    for (const DrawnCable& cable : layout_.cables) {
      const size_t series = series_.at(KindOf(topology_, cable.links[0]));
      const double width = Width(Bandwidth(cable)) * (layout_.cables.size() > 400 ? 0.5 : 1);
      text += fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}><title>{}</title></path>\n",
                          svg::PathOf(cable), svg::SeriesColour(series), svg::Number(width),
                          series >= svg::kNumSeries ? " stroke-dasharray=\"6 3\"" : "",
                          svg::Escaped(Title(cable)));
    }
    return text + "</g>\n";
  }

  std::string Title(const DrawnCable& cable) const {
    std::map<std::pair<bool, int64_t>, int64_t> counts;
    for (const LinkId l : cable.links)
      ++counts[{!Forward(cable, l), topology_.link(l).bandwidth_bytes_per_s}];
    const auto name = [&](int32_t item) { return layout_.items[static_cast<size_t>(item)].lines[0]; };
    std::string text;
    for (const auto& [key, count] : counts)
      text += fmt::format("{}{} to {}: {} x {}", text.empty() ? "" : "; ",
                          name(key.first ? cable.b : cable.a), name(key.first ? cable.a : cable.b), count,
                          FormatBandwidthShort(static_cast<double>(key.second)));
    return text;
  }

  // "2x" on cables of several links, between two nodes.
  std::string Counts() const {
    std::string text;
    if (layout_.cables.size() > 120) return text;
    for (const DrawnCable& cable : layout_.cables) {
      if (layout_.items[static_cast<size_t>(cable.a)].folded ||
          layout_.items[static_cast<size_t>(cable.b)].folded)
        continue;
      const int64_t forward = std::ranges::count_if(cable.links, [&](LinkId l) { return Forward(cable, l); });
      const int64_t count = std::max(forward, std::ssize(cable.links) - forward);
      const bool one_way = forward == 0 || forward == std::ssize(cable.links);
      if (count < 2 && !one_way) continue;
      const DrawnPoint at = Middle(cable);
      const std::string label = fmt::format("{}{}", count > 1 ? fmt::format("{}x", count) : "",
                                            one_way ? (forward > 0 ? "→" : "←") : "");
      text += svg::Rect(at.x - 10, at.y - 8, 20, 15, "fill=\"#ffffff\" fill-opacity=\"0.8\"");
      text += svg::Text(at.x, at.y + 4, "middle", 11, "#333333", label);
    }
    return text;
  }
  static DrawnPoint Middle(const DrawnCable& cable) {
    const std::vector<DrawnPoint>& p = cable.points;
    if (cable.form == DrawnCable::Form::kStubs) return p[1];
    if (cable.form == DrawnCable::Form::kCurve)
      return {(p[0].x + 2 * p[1].x + p[2].x) / 4, (p[0].y + 2 * p[1].y + p[2].y) / 4};
    // Not quite the middle, where the lines of a mesh cross.
    return {p[0].x * 0.62 + p.back().x * 0.38, p[0].y * 0.62 + p.back().y * 0.38};
  }

  double Legend(std::string& text, double& width) const {
    constexpr size_t kMostKinds = 10;
    double y = 18;
    for (size_t k = 0; k < std::min(kinds_.size(), kMostKinds); ++k) {
      const auto& [kind, count] = kinds_[k];
      const bool drawn = drawn_.contains(kind);
      const std::string line = fmt::format(
          "{}–{}  {} each way, latency {}  ({} link{}{})", NodeKindName(kind.from), NodeKindName(kind.to),
          FormatBandwidthShort(static_cast<double>(kind.bandwidth_bytes_per_s)),
          FormatDuration(kind.latency_ps), count, count == 1 ? "" : "s", drawn ? "" : ", all within boxes");
      if (drawn)
        text += svg::Line(0, y - 4, 36, y - 4,
                          fmt::format("stroke=\"{}\" stroke-width=\"{}\"{}", svg::SeriesColour(k),
                                      svg::Number(Width(kind.bandwidth_bytes_per_s)),
                                      k >= svg::kNumSeries ? " stroke-dasharray=\"6 3\"" : ""));
      text += svg::Text(46, y, "start", 12, "#333333", line);
      width = std::max(width, 46 + 6.6 * static_cast<double>(line.size()));
      y += 19;
    }
    if (kinds_.size() > kMostKinds) {
      text += svg::Text(46, y, "start", 12, "#333333",
                        fmt::format("and {} more kinds of link", kinds_.size() - kMostKinds));
      y += 19;
    }
    return y + NodeLegend(text, y + 4, width);
  }

  double NodeLegend(std::string& text, double y, double& width) const {
    std::set<std::string> notes;
    bool wraps = false;
    for (const Node& node : topology_.spec().nodes) {
      if (node.multicast && node.reduce) notes.insert("switches copy and add");
      if (node.multicast && !node.reduce) notes.insert("switches copy");
      if (node.reduce && !node.multicast) notes.insert("switches add");
    }
    for (const DrawnCable& cable : layout_.cables) wraps |= cable.form == DrawnCable::Form::kStubs;
    if (wraps) notes.insert("stubs at opposite ends are one cable");
    if (std::ranges::any_of(layout_.items, &DrawnItem::folded)) notes.insert("piles stand for several nodes");
    std::string line;
    for (const std::string& note : notes) line += (line.empty() ? "" : "; ") + note;
    if (line.empty()) return 4;
    text += svg::Text(0, y, "start", 12, "#555555", line);
    width = std::max(width, 6.6 * static_cast<double>(line.size()));
    return 22;
  }

  const Topology& topology_;
  const MachineLayout& layout_;
  std::vector<std::pair<LinkKind, int64_t>> kinds_;
  std::map<LinkKind, size_t> series_;
  std::set<LinkKind> drawn_;  // not only within folded items
};

}  // namespace

std::string TopologySvg(const Topology& topology, const MachineLayout& layout) {
  return TopologyDrawer(topology, layout).Draw();
}

}  // namespace xccl
