#include "draw/layout/rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace xccl {
namespace {

constexpr double kRowGap = 62;

using Neighbours = std::vector<std::vector<int32_t>>;

// Places of a row that keep its order and distances and are nearest to the wanted ones (least squares by
// pooling adjacent violators).
std::vector<double> Spread(const std::vector<double>& wanted, const std::vector<double>& widths) {
  const size_t n = wanted.size();
  std::vector<double> offset(n, 0);
  for (size_t i = 1; i < n; ++i) offset[i] = offset[i - 1] + (widths[i - 1] + widths[i]) / 2 + kGap;
  struct Pool {
    double sum;
    size_t count;
  };
  std::vector<Pool> pools;
  for (size_t i = 0; i < n; ++i) {
    pools.push_back({wanted[i] - offset[i], 1});
    while (pools.size() > 1) {
      const Pool &last = pools.back(), &before = pools[pools.size() - 2];
      if (before.sum / static_cast<double>(before.count) <= last.sum / static_cast<double>(last.count)) break;
      pools[pools.size() - 2] = {before.sum + last.sum, before.count + last.count};
      pools.pop_back();
    }
  }
  std::vector<double> x;
  for (const Pool& pool : pools)
    for (size_t i = 0; i < pool.count; ++i)
      x.push_back(pool.sum / static_cast<double>(pool.count) + offset[x.size()]);
  return x;
}

// Places every item of a row above or below the middle of its neighbours that are placed already.
void PlaceByNeighbours(const ItemRow& row, const Neighbours& neighbours, const std::vector<bool>& placed,
                       double width, Sketch& sketch) {
  struct Wish {
    double x;
    int32_t item;
    size_t joined;
  };
  std::vector<Wish> wishes;
  for (const int32_t item : row.items) {
    double sum = 0;
    size_t count = 0;
    for (const int32_t other : neighbours[static_cast<size_t>(item)]) {
      if (!placed[static_cast<size_t>(other)]) continue;
      sum += sketch.items[static_cast<size_t>(other)].x;
      ++count;
    }
    wishes.push_back({count > 0 ? sum / static_cast<double>(count) : width / 2, item, count});
  }
  std::ranges::stable_sort(wishes, {}, [](const Wish& wish) { return std::llround(wish.x); });
  if (wishes.size() == 1 && wishes[0].joined > 5) {
    DrawnItem& bar = sketch.items[static_cast<size_t>(wishes[0].item)];
    bar.width = std::max(bar.width, width);
  }
  // Items that all want nearly one place are spread over the whole width.
  const double n = static_cast<double>(wishes.size());
  if (wishes.size() > 1 && wishes.back().x - wishes.front().x < 0.35 * width)
    for (size_t i = 0; i < wishes.size(); ++i)
      wishes[i].x = width * (0.1 + 0.8 * (static_cast<double>(i) + 0.5) / n);
  std::vector<double> wanted, widths;
  for (const Wish& wish : wishes) {
    wanted.push_back(wish.x);
    widths.push_back(sketch.items[static_cast<size_t>(wish.item)].width);
  }
  const std::vector<double> x = Spread(wanted, widths);
  for (size_t i = 0; i < wishes.size(); ++i) sketch.items[static_cast<size_t>(wishes[i].item)].x = x[i];
}

}  // namespace

std::vector<std::pair<int32_t, int32_t>> JoinedItems(const Topology& topology,
                                                     const std::vector<int32_t>& item_of) {
  std::vector<std::pair<int32_t, int32_t>> joined;
  for (const Link& link : topology.spec().links) {
    const int32_t a = item_of[link.from.index()], b = item_of[link.to.index()];
    if (a >= 0 && b >= 0 && a != b) joined.emplace_back(std::min(a, b), std::max(a, b));
  }
  std::ranges::sort(joined);
  joined.erase(std::unique(joined.begin(), joined.end()), joined.end());
  return joined;
}

double PlaceSideBySide(const std::vector<int32_t>& items, double left, Sketch& sketch) {
  for (const int32_t i : items) {
    DrawnItem& item = sketch.items[static_cast<size_t>(i)];
    item.x = left + item.width / 2;
    left += item.width + kGap;
  }
  return left - (items.empty() ? 0 : kGap);
}

DrawnCable ArcBetween(const Sketch& sketch, int32_t a, int32_t b, bool down) {
  const DrawnItem &from = sketch.items[static_cast<size_t>(a)], &to = sketch.items[static_cast<size_t>(b)];
  const double low = std::min(from.x, to.x), high = std::max(from.x, to.x);
  const bool passes = std::ranges::any_of(sketch.items, [&](const DrawnItem& item) {
    return std::abs(item.y - from.y) < 1 && item.x > low + 1 && item.x < high - 1;
  });
  if (!passes) return {a, b, {}, DrawnCable::Form::kLine, {{from.x, from.y}, {to.x, to.y}}};
  const double bend = from.height + std::min(200.0, 0.28 * (high - low));
  return {a,
          b,
          {},
          DrawnCable::Form::kCurve,
          {{from.x, from.y}, {(low + high) / 2, from.y + (down ? bend : -bend)}, {to.x, to.y}}};
}

void PlaceRows(const std::vector<ItemRow>& rows, size_t base, double top,
               const std::vector<std::pair<int32_t, int32_t>>& joined, double width, Sketch& sketch) {
  Neighbours neighbours(sketch.items.size());
  std::vector<int32_t> row_of(sketch.items.size(), -1);
  for (const auto& [a, b] : joined) {
    neighbours[static_cast<size_t>(a)].push_back(b);
    neighbours[static_cast<size_t>(b)].push_back(a);
  }
  std::vector<bool> placed(sketch.items.size(), false);
  const auto settle = [&](size_t r, bool move) {
    if (move) PlaceByNeighbours(rows[r], neighbours, placed, width, sketch);
    for (const int32_t item : rows[r].items) {
      placed[static_cast<size_t>(item)] = true;
      row_of[static_cast<size_t>(item)] = static_cast<int32_t>(r);
    }
  };
  settle(base, false);
  for (size_t r = base; r-- > 0;) settle(r, true);
  for (size_t r = base + 1; r < rows.size(); ++r) settle(r, true);
  double y = top;
  for (const ItemRow& row : rows) {
    double height = 0;
    for (const int32_t i : row.items) height = std::max(height, sketch.items[static_cast<size_t>(i)].height);
    for (const int32_t i : row.items) sketch.items[static_cast<size_t>(i)].y = y + height / 2;
    y += row.items.empty() ? 0 : height + kRowGap;
  }
  sketch.height = std::max(sketch.height, y - kRowGap);
  for (const auto& [a, b] : joined) {
    const int32_t row = row_of[static_cast<size_t>(a)];
    if (row >= 0 && row == row_of[static_cast<size_t>(b)])
      sketch.shaped.push_back(ArcBetween(sketch, a, b, rows[static_cast<size_t>(row)].arcs_down));
  }
}

}  // namespace xccl
