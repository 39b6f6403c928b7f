#include "draw/layout/hidden.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "draw/layout/rows.h"

namespace xccl {
namespace {

// Whether the line from `from` to `to` has a point inside the item's box (Liang and Barsky, 1984).
bool Meets(const DrawnItem& item, const DrawnPoint& from, const DrawnPoint& to) {
  const double dx = to.x - from.x, dy = to.y - from.y;
  double enters = 0, leaves = 1;
  const auto clip = [&](double at, double step, double middle, double half) {
    if (std::abs(step) < 1e-9) return std::abs(at - middle) < half;
    const double one = (middle - half - at) / step, two = (middle + half - at) / step;
    enters = std::max(enters, std::min(one, two));
    leaves = std::min(leaves, std::max(one, two));
    return enters < leaves;
  };
  return clip(from.x, dx, item.x, item.width / 2) && clip(from.y, dy, item.y, item.height / 2);
}

DrawnPoint OnCurve(const std::vector<DrawnPoint>& points, double t) {
  const double a = (1 - t) * (1 - t), b = 2 * t * (1 - t), c = t * t;
  return {a * points[0].x + b * points[1].x + c * points[2].x,
          a * points[0].y + b * points[1].y + c * points[2].y};
}

// Number of items other than the cable's ends whose box the cable meets.
size_t Hiding(const std::vector<DrawnItem>& items, const DrawnCable& cable) {
  constexpr int kPieces = 24;  // of a curve
  std::vector<DrawnPoint> line = cable.points;
  if (cable.form == DrawnCable::Form::kCurve) {
    line.clear();
    for (int piece = 0; piece <= kPieces; ++piece)
      line.push_back(OnCurve(cable.points, static_cast<double>(piece) / kPieces));
  }
  size_t hiding = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (std::cmp_equal(i, cable.a) || std::cmp_equal(i, cable.b)) continue;
    for (size_t p = 0; p + 1 < line.size(); ++p) {
      if (!Meets(items[i], line[p], line[p + 1])) continue;
      ++hiding;
      break;
    }
  }
  return hiding;
}

// The cable in a form that no box hides: a straight line between the edges of its items that face each other,
// else the flattest arc. Arcs go up, or to the right of a cable that goes down, before they go to the other
// side. If boxes hide all of them, the arc that fewest hide.
DrawnCable Shown(const std::vector<DrawnItem>& items, const DrawnCable& straight) {
  constexpr std::array kBends = {0.1, 0.2, 0.3, 0.45, 0.7, 1.0};  // of the cable's length
  constexpr double kEdge = 0.98;  // of half a box: the line still begins within it
  const DrawnItem &a = items[static_cast<size_t>(straight.a)], &b = items[static_cast<size_t>(straight.b)];
  const DrawnPoint &from = straight.points.front(), &to = straight.points.back();
  const double dx = to.x - from.x, dy = to.y - from.y;
  if (std::abs(dy) > (a.height + b.height) / 2) {
    DrawnCable line = straight;
    line.points.front().y += std::copysign(kEdge * a.height / 2, dy);
    line.points.back().y -= std::copysign(kEdge * b.height / 2, dy);
    if (Hiding(items, line) == 0) return line;
  }
  const double up = dx > 0 || (dx == 0 && dy > 0) ? 1 : -1;
  DrawnCable best = straight;
  size_t fewest = std::numeric_limits<size_t>::max();
  for (const double bend : kBends) {
    for (const double side : {up * bend, -up * bend}) {
      DrawnCable arc = straight;
      arc.form = DrawnCable::Form::kCurve;
      arc.points = {from, {from.x + dx / 2 + dy * side, from.y + dy / 2 - dx * side}, to};
      const size_t hiding = Hiding(items, arc);
      if (hiding >= fewest) continue;
      fewest = hiding;
      best = std::move(arc);
      if (hiding == 0) return best;
    }
  }
  return best;
}

}  // namespace

DrawnPoint EndAt(const DrawnItem& item, const DrawnItem& other) {
  constexpr double kBar = 200;
  if (item.width < kBar) return {item.x, item.y};
  const double reach = item.width / 2 - 12;
  return {std::clamp(other.x, item.x - reach, item.x + reach), item.y};
}

void BendHiddenCables(const Topology& topology, Sketch& sketch) {
  const std::vector<DrawnItem>& items = sketch.items;
  std::set<std::pair<int32_t, int32_t>> shaped;
  for (DrawnCable& cable : sketch.shaped) {
    shaped.emplace(std::min(cable.a, cable.b), std::max(cable.a, cable.b));
    if (cable.form == DrawnCable::Form::kLine && Hiding(items, cable) > 0) cable = Shown(items, cable);
  }
  std::vector<int32_t> item_of(static_cast<size_t>(topology.num_nodes()), -1);
  for (size_t i = 0; i < items.size(); ++i)
    for (const NodeId node : items[i].nodes) item_of[node.index()] = static_cast<int32_t>(i);
  for (const auto& [a, b] : JoinedItems(topology, item_of)) {
    if (shaped.contains({a, b})) continue;
    const DrawnItem &from = items[static_cast<size_t>(a)], &to = items[static_cast<size_t>(b)];
    const DrawnCable straight = {a, b, {}, DrawnCable::Form::kLine, {EndAt(from, to), EndAt(to, from)}};
    if (Hiding(items, straight) > 0) sketch.shaped.push_back(Shown(items, straight));
  }
}

}  // namespace xccl
