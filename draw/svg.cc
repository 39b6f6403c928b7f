#include "draw/svg.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace xccl::svg {
namespace {

struct Style {
  std::string_view fill, stroke;
  double corner;
};

Style StyleOf(NodeKind kind) {
  switch (kind) {
    case NodeKind::kGpu:
      return {"#dff3e1", "#2e7d32", 5};
    case NodeKind::kSwitch:
      return {"#dceaf9", "#1f5f9e", 12};
    case NodeKind::kNic:
      return {"#fdeccb", "#9a6a00", 2};
    case NodeKind::kCpu:
      return {"#e6e6e6", "#555555", 2};
  }
  return {"#ffffff", "#000000", 0};
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string made;
  for (const char c : text) {
    switch (c) {
      case '<':
        made += "&lt;";
        break;
      case '>':
        made += "&gt;";
        break;
      case '&':
        made += "&amp;";
        break;
      case '"':
        made += "&quot;";
        break;
      default:
        made += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return made;
}

std::string Number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string_view SeriesColour(size_t i) {
  constexpr std::array<std::string_view, kNumSeries> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                                 "#e69f00", "#56b4e9", "#666666"};
  return kColours[i % kNumSeries];
}

std::string Text(double x, double y, std::string_view anchor, double size, std::string_view fill,
                 std::string_view text, std::string_view more) {
  return fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\"{}{}>{}</text>\n", Number(x),
      Number(y), anchor, Number(size), fill, more.empty() ? "" : " ", more, Escaped(text));
}

std::string Rect(double x, double y, double width, double height, std::string_view more) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}/>\n", Number(x), Number(y),
                     Number(width), Number(height), more);
}

std::string Line(double x1, double y1, double x2, double y2, std::string_view more) {
  return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n", Number(x1), Number(y1),
                     Number(x2), Number(y2), more);
}

std::string PathOf(const DrawnCable& cable) {
  const auto at = [&](size_t i) {
    return fmt::format("{} {}", Number(cable.points[i].x), Number(cable.points[i].y));
  };
  switch (cable.form) {
    case DrawnCable::Form::kLine: {
      std::string path = "M" + at(0);
      for (size_t i = 1; i < cable.points.size(); ++i) path += " L" + at(i);
      return path;
    }
    case DrawnCable::Form::kCurve:
      return "M" + at(0) + " Q" + at(1) + " " + at(2);
    case DrawnCable::Form::kStubs:
      return "M" + at(0) + " L" + at(1) + " M" + at(2) + " L" + at(3);
  }
  return "";
}

std::string Document(double width, double height, std::string_view title, std::string_view body) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "role=\"img\" font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">\n<title>{2}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{3}</svg>\n",
      Number(width), Number(height), Escaped(title), body);
}

std::string Frames(const MachineLayout& layout) {
  std::string text;
  for (const DrawnFrame& frame : layout.frames) {
    text += Rect(frame.left, frame.top, frame.width, frame.height,
                 "rx=\"8\" fill=\"#f7f7f7\" stroke=\"#b0b0b0\"");
    text += Text(frame.label_at.x, frame.label_at.y + 4, "start", 12, "#444444", frame.label);
  }
  return text;
}

std::string Items(const MachineLayout& layout, const Topology& topology) {
  std::string text;
  for (const DrawnItem& item : layout.items) {
    const Style style = StyleOf(item.kind);
    const double left = item.x - item.width / 2, top = item.y - item.height / 2;
    std::string name = topology.NodeName(item.nodes.front());
    if (item.folded) name += fmt::format(" to {}", topology.NodeName(item.nodes.back()));
    text += fmt::format("<g><title>{}</title>\n", Escaped(name));
    // A folded item looks like a pile.
    if (item.folded)
      text +=
          Rect(left + 3, top + 3, item.width, item.height,
               fmt::format("rx=\"{}\" fill=\"{}\" stroke=\"{}\"", style.corner, style.fill, style.stroke));
    text += Rect(left, top, item.width, item.height,
                 fmt::format("rx=\"{}\" fill=\"{}\" stroke=\"{}\"", style.corner, style.fill, style.stroke));
    const double first = item.y + 4.5 - 7.5 * static_cast<double>(item.lines.size() - 1);
    for (size_t i = 0; i < item.lines.size(); ++i)
      text += Text(item.x, first + 15 * static_cast<double>(i), "middle", i == 0 ? 13 : 11, "#222222",
                   item.lines[i]);
    text += "</g>\n";
  }
  return text;
}

}  // namespace xccl::svg
