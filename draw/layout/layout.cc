#include "draw/layout/layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "draw/layout/direct.h"
#include "draw/layout/hidden.h"
#include "draw/layout/hosts.h"
#include "draw/layout/sketch.h"

namespace xccl {
namespace {

// The least and the greatest coordinate of a quadratic curve.
std::pair<double, double> CurveReach(double from, double by, double to) {
  auto [least, greatest] = std::minmax(from, to);
  if (by >= least && by <= greatest) return {least, greatest};
  const double turn = from - (from - by) * (from - by) / (from - 2 * by + to);
  return {std::min(least, turn), std::max(greatest, turn)};
}

// Moves the drawing so that its upper left corner is at the margin.
void Fit(Sketch& sketch) {
  double left = 1e18, top = 1e18, right = -1e18, bottom = -1e18;
  const auto cover = [&](double x0, double y0, double x1, double y1) {
    left = std::min(left, x0);
    top = std::min(top, y0);
    right = std::max(right, x1);
    bottom = std::max(bottom, y1);
  };
  for (const DrawnItem& item : sketch.items)
    cover(item.x - item.width / 2, item.y - item.height / 2, item.x + item.width / 2,
          item.y + item.height / 2);
  for (const DrawnFrame& frame : sketch.frames)
    cover(frame.left, frame.top, frame.left + frame.width, frame.top + frame.height);
  for (const DrawnCable& cable : sketch.shaped) {
    if (cable.form == DrawnCable::Form::kCurve) {
      const DrawnPoint &from = cable.points[0], &by = cable.points[1], &to = cable.points[2];
      const auto [x0, x1] = CurveReach(from.x, by.x, to.x);
      const auto [y0, y1] = CurveReach(from.y, by.y, to.y);
      cover(x0, y0, x1, y1);
    }
    if (cable.form != DrawnCable::Form::kStubs) continue;
    for (const DrawnPoint& point : cable.points) cover(point.x, point.y, point.x, point.y);
  }
  Shift(sketch, kMargin - left, kMargin - top);
  sketch.width = right - left + 2 * kMargin;
  sketch.height = bottom - top + 2 * kMargin;
}

void AddCables(const Topology& topology, std::vector<DrawnCable> shaped, MachineLayout& layout) {
  std::map<std::pair<int32_t, int32_t>, int32_t> number;
  layout.cable_of_link.assign(static_cast<size_t>(topology.num_links()), -1);
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.link(LinkId(l));
    const auto [a, b] =
        std::minmax(layout.item_of_node[link.from.index()], layout.item_of_node[link.to.index()]);
    if (a == b) continue;
    const auto [it, added] = number.try_emplace({a, b}, static_cast<int32_t>(layout.cables.size()));
    layout.cable_of_link[static_cast<size_t>(l)] = it->second;
    if (!added) {
      layout.cables[static_cast<size_t>(it->second)].links.emplace_back(l);
      continue;
    }
    const DrawnItem &from = layout.items[static_cast<size_t>(a)], &to = layout.items[static_cast<size_t>(b)];
    layout.cables.push_back({a, b, {LinkId(l)}, DrawnCable::Form::kLine, {EndAt(from, to), EndAt(to, from)}});
  }
  for (DrawnCable& cable : shaped) {
    if (cable.a > cable.b) {
      std::swap(cable.a, cable.b);
      std::ranges::reverse(cable.points);
    }
    const auto it = number.find({cable.a, cable.b});
    if (it == number.end()) continue;
    DrawnCable& drawn = layout.cables[static_cast<size_t>(it->second)];
    drawn.form = cable.form;
    drawn.points = std::move(cable.points);
  }
}

// How many boxes stand for several nodes, and for how many: "; 2 boxes stand for 32 nodes". Empty: none does.
std::string Folding(const MachineLayout& layout) {
  int64_t folded = 0, nodes = 0;
  for (const DrawnItem& item : layout.items) {
    folded += item.folded ? 1 : 0;
    nodes += item.folded ? std::ssize(item.nodes) : 0;
  }
  if (folded == 0) return "";
  return fmt::format("; {} box{} for {} nodes", folded, folded == 1 ? " stands" : "es stand", nodes);
}

}  // namespace

MachineLayout LayOut(const Topology& topology) {
  const bool direct = std::ranges::all_of(topology.spec().nodes,
                                          [](const Node& node) { return node.kind == NodeKind::kGpu; });
  Sketch sketch = direct ? DirectSketch(topology) : ClusterSketch(topology);
  BendHiddenCables(topology, sketch);
  Fit(sketch);
  MachineLayout layout;
  layout.width = sketch.width;
  layout.height = sketch.height;
  layout.items = std::move(sketch.items);
  layout.frames = std::move(sketch.frames);
  layout.item_of_node.assign(static_cast<size_t>(topology.num_nodes()), 0);
  for (size_t i = 0; i < layout.items.size(); ++i)
    for (const NodeId node : layout.items[i].nodes)
      layout.item_of_node[node.index()] = static_cast<int32_t>(i);
  AddCables(topology, std::move(sketch.shaped), layout);
  layout.shape = sketch.shape + Folding(layout);
  return layout;
}

}  // namespace xccl
