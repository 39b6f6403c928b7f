#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "draw/draw.h"
#include "draw/svg.h"

namespace xccl {
namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\r' || c == '\n' ? ' ' : c;
  }
  return quoted + "\"";
}

std::string_view Style(NodeKind kind) {
  switch (kind) {
    case NodeKind::kGpu:
      return "shape=box, fillcolor=\"#dff3e1\"";
    case NodeKind::kSwitch:
      return "shape=box, style=\"filled,rounded\", fillcolor=\"#dceaf9\"";
    case NodeKind::kNic:
      return "shape=box, fillcolor=\"#fdeccb\"";
    case NodeKind::kCpu:
      return "shape=box, fillcolor=\"#e6e6e6\"";
  }
  return "";
}

constexpr size_t kMostLabels = 20;  // cables; of more, bandwidths would hide each other

// The attributes that links which a picture draws as one have in common.
struct LinkClass {
  int64_t bandwidth, latency, overhead;
  auto operator<=>(const LinkClass&) const = default;
};

// Points of Graphviz are 1/72 inch, y up; sizes are in inches. A picture in which no item stands for several
// nodes also has the machine itself, as topologies/peers/graph.h reads it.
class DotWriter {
 public:
  DotWriter(const Topology& topology, const MachineLayout& layout)
      : topology_(topology),
        layout_(layout),
        folded_(std::ranges::any_of(layout.items, &DrawnItem::folded)) {}

  std::string Write() const {
    std::string text = fmt::format(
        "digraph {} {{\n  // Places are given: neato -n2 -Tsvg draws it as it is.\n"
        "  graph [layout=neato, notranslate=true, splines=true, outputorder=edgesfirst, label={}{}];\n"
        "  node [style=filled, fixedsize=true, fontname=\"Helvetica\", fontsize=12];\n"
        "  edge [dir=none, fontname=\"Helvetica\", fontsize=9];\n",
        Quoted(topology_.name()),
        Quoted(fmt::format("{}: {} ranks: {}", topology_.name(), topology_.num_ranks(), layout_.shape)),
        OfMachine());
    for (size_t f = 0; f < layout_.frames.size(); ++f) text += Frame(f);
    for (size_t i = 0; i < layout_.items.size(); ++i) text += Item(i);
    for (const DrawnCable& cable : layout_.cables) text += Cable(cable);
    return text + "}\n";
  }

 private:
  std::string At(DrawnPoint point, char between = ',') const {
    return fmt::format("{}{}{}", svg::Number(point.x), between, svg::Number(layout_.height - point.y));
  }
  // A cluster names what it holds; its rectangle is given, as are the places within.
  std::string Frame(size_t f) const {
    const DrawnFrame& frame = layout_.frames[f];
    std::string members;
    for (size_t i = 0; i < layout_.items.size(); ++i) {
      const DrawnItem& item = layout_.items[i];
      if (item.x > frame.left && item.x < frame.left + frame.width && item.y > frame.top &&
          item.y < frame.top + frame.height)
        members += fmt::format(" i{};", i);
    }
    return fmt::format("  subgraph cluster_{} {{ label={}; labelloc={}; labeljust=l; bb=\"{},{}\";{} }}\n", f,
                       Quoted(frame.label), frame.label_at.y > frame.top + frame.height / 2 ? "b" : "t",
                       At({frame.left, frame.top + frame.height}), At({frame.left + frame.width, frame.top}),
                       members);
  }
  std::string Item(size_t i) const {
    const DrawnItem& item = layout_.items[i];
    std::string label;
    for (const std::string& line : item.lines) label += (label.empty() ? "" : "\n") + line;
    std::string quoted = Quoted(label);
    if (item.lines.size() > 1) quoted = "\"" + Inner(item.lines[0]) + "\\n" + Inner(item.lines[1]) + "\"";
    return fmt::format("  i{} [label={}, {}, pos=\"{}!\", width={:.3f}, height={:.3f}{}];\n", i, quoted,
                       Style(item.kind), At({item.x, item.y}), item.width / 72, item.height / 72,
                       OfNode(item));
  }

  std::string OfMachine() const {
    if (folded_) return ", folded=true";
    std::string text = fmt::format(", source={}", Quoted(topology_.spec().source));
    if (!topology_.gpu_arch().empty()) text += fmt::format(", arch={}", topology_.gpu_arch());
    if (topology_.num_hosts() == 1) return text;
    std::string hosts;
    for (const Host& host : topology_.spec().hosts) hosts += (hosts.empty() ? "" : " ") + host.name;
    return text + fmt::format(", hosts={}", Quoted(hosts));
  }
  std::string OfNode(const DrawnItem& item) const {
    if (folded_) return "";
    const Node& node = topology_.node(item.nodes[0]);
    std::string text = fmt::format(", kind={}, name={}", NodeKindName(node.kind), Quoted(node.id));
    if (node.host) text += fmt::format(", host={}", Quoted(topology_.spec().hosts[node.host->index()].name));
    if (node.multicast) text += ", multicast=true";
    if (node.reduce) text += ", reduce=true";
    return text + fmt::format(", node={}", item.nodes[0].value);
  }
  std::string OfLinks(const LinkClass& links, std::span<const LinkId> there,
                      std::span<const LinkId> back) const {
    if (folded_) return "";
    const auto ids = [](std::span<const LinkId> ids) {
      std::string text;
      for (const LinkId id : ids) text += fmt::format("{}{}", text.empty() ? "" : " ", id.value);
      return text;
    };
    std::string text = fmt::format(", bandwidth=\"{}\", latency=\"{}\"", FormatBandwidth(links.bandwidth),
                                   FormatDuration(links.latency));
    if (links.overhead != 0) text += fmt::format(", overhead=\"{}\"", FormatDuration(links.overhead));
    return text + fmt::format(", links=\"{}{}{}\"", ids(there), back.empty() ? "" : "|", ids(back));
  }
  static std::string Inner(std::string_view line) {
    const std::string quoted = Quoted(line);
    return quoted.substr(1, quoted.size() - 2);
  }

  // One edge for each class of links; both directions are one edge where they are alike.
  std::string Cable(const DrawnCable& cable) const {
    std::map<LinkClass, std::pair<std::vector<LinkId>, std::vector<LinkId>>> classes;  // there, and back
    for (const LinkId l : cable.links) {
      const Link& link = topology_.link(l);
      auto& [there, back] = classes[{link.bandwidth_bytes_per_s, link.latency_ps, link.overhead_ps}];
      (layout_.item_of_node[link.from.index()] == cable.a ? there : back).push_back(l);
    }
    std::string text;
    for (const auto& item : classes) {
      const LinkClass& links = item.first;
      const std::span<const LinkId> there = item.second.first, back = item.second.second;
      const size_t both = std::min(there.size(), back.size());
      const auto edge = [&](std::string_view direction, std::span<const LinkId> ahead,
                            std::span<const LinkId> behind) {
        if (ahead.empty()) return;
        const size_t n = ahead.size();
        const std::string numbers = Quoted((n > 1 ? fmt::format("{} x ", n) : "") +
                                           FormatBandwidthShort(static_cast<double>(links.bandwidth)));
        text += fmt::format("  i{} -> i{} [{}={}, penwidth={}{}{}{}];\n", cable.a, cable.b,
                            layout_.cables.size() > kMostLabels ? "tooltip" : "label", numbers,
                            svg::Number(PenWidth(links.bandwidth * static_cast<int64_t>(n))), direction,
                            Spline(cable), OfLinks(links, ahead, behind));
      };
      edge("", there.first(both), back.first(both));
      edge(", dir=forward", there.subspan(both), {});
      edge(", dir=back", back.subspan(both), {});
    }
    return text;
  }
  static double PenWidth(int64_t bandwidth_bytes_per_s) {
    return std::clamp(1 + std::log10(static_cast<double>(bandwidth_bytes_per_s) / 1e9), 1.0, 5.0);
  }

  // The points of an edge that is not a line between two centres.
  std::string Spline(const DrawnCable& cable) const {
    const std::vector<DrawnPoint>& p = cable.points;
    const auto cubic = [&](DrawnPoint from, DrawnPoint one, DrawnPoint two, DrawnPoint to) {
      return fmt::format(", pos=\"{} {} {} {}\"", At(from), At(one), At(two), At(to));
    };
    const auto between = [](DrawnPoint from, DrawnPoint to, double part) {
      return DrawnPoint{from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part};
    };
    // The cubic curve that equals the quadratic one.
    if (cable.form == DrawnCable::Form::kCurve)
      return cubic(p[0], between(p[0], p[1], 2.0 / 3), between(p[2], p[1], 2.0 / 3), p[2]);
    const DrawnItem& a = layout_.items[static_cast<size_t>(cable.a)];
    const DrawnItem& b = layout_.items[static_cast<size_t>(cable.b)];
    if (cable.form != DrawnCable::Form::kLine || (p[0].x == a.x && p[1].x == b.x)) return "";
    const double down = a.y < b.y ? 0.5 : -0.5;  // a bar: from edge to edge
    const DrawnPoint from{p[0].x, p[0].y + down * a.height}, to{p[1].x, p[1].y - down * b.height};
    return cubic(from, between(from, to, 1.0 / 3), between(from, to, 2.0 / 3), to);
  }

  const Topology& topology_;
  const MachineLayout& layout_;
  bool folded_;
};

}  // namespace

std::string TopologyDot(const Topology& topology, const MachineLayout& layout) {
  return DotWriter(topology, layout).Write();
}

}  // namespace xccl
