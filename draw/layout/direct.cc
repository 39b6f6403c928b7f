// A grid of up to 1,024 ranks is drawn rank by rank; of a larger one, each item is a block. Whatever is no
// grid stands on a circle, on which no line between two items passes a third. Its order there makes the sum
// of squared distances around the circle small: from the order of ranks, pairs are swapped while that helps.
#include "draw/layout/direct.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include "draw/layout/grid_shape.h"

namespace xccl {
namespace {

constexpr int32_t kMostOnCircle = 64;
constexpr int32_t kMostInGrid = 1024;

Neighbours NeighboursOf(const Topology& topology) {
  Neighbours neighbours(static_cast<size_t>(topology.num_nodes()));
  for (const Link& link : topology.spec().links) {
    neighbours[link.from.index()].push_back(link.to.value);
    neighbours[link.to.index()].push_back(link.from.value);
  }
  for (std::vector<int32_t>& of : neighbours) {
    std::ranges::sort(of);
    of.erase(std::unique(of.begin(), of.end()), of.end());
  }
  return neighbours;
}

// ---- Grids ----

// How a grid is drawn: extents in items, and how many vertices of each dimension an item covers.
struct DrawnGrid {
  std::vector<int32_t> dims;  // slowest first; one, two or three
  std::vector<int32_t> block;
  std::vector<bool> wraps;
};

DrawnGrid Folded(const GridShape& shape) {
  DrawnGrid grid{shape.dims, std::vector<int32_t>(shape.dims.size(), 1), shape.wraps};
  const auto items = [&] {
    return std::accumulate(grid.dims.begin(), grid.dims.end(), int64_t{1}, std::multiplies<>());
  };
  while (items() > kMostInGrid) {
    // The longest dimension is folded by its least divisor, or in two.
    const size_t k = static_cast<size_t>(std::ranges::max_element(grid.dims) - grid.dims.begin());
    int32_t by = 2;
    while (by < grid.dims[k] && grid.dims[k] % by != 0) ++by;
    if (by > 8) by = 2;
    grid.block[k] *= by;
    grid.dims[k] = (shape.dims[k] + grid.block[k] - 1) / grid.block[k];
  }
  return grid;
}

// Items in order of the drawn grid, row-major.
std::vector<DrawnItem> GridItems(const Topology& topology, const GridShape& shape, const DrawnGrid& grid) {
  int32_t count = 1;
  for (const int32_t dim : grid.dims) count *= dim;
  std::vector<NodeGroup> groups(static_cast<size_t>(count));
  for (int32_t v = 0; v < topology.num_nodes(); ++v) {
    int32_t rest = v, item = 0, stride = 1;
    for (size_t k = shape.dims.size(); k-- > 0;) {
      item += rest % shape.dims[k] / grid.block[k] * stride;
      rest /= shape.dims[k];
      stride *= grid.dims[k];
    }
    groups[static_cast<size_t>(item)].push_back(NodeId(v));
  }
  std::vector<DrawnItem> items;
  for (const NodeGroup& group : groups) items.push_back(MakeItem(topology, group));
  double width = 0, height = 0;
  for (const DrawnItem& item : items) {
    width = std::max(width, item.width);
    height = std::max(height, item.height);
  }
  for (DrawnItem& item : items) {
    item.width = width;
    item.height = height;
  }
  return items;
}

// Rows and columns. A cable that goes round the grid is drawn as two stubs at its edges.
void PlaceFlat(const DrawnGrid& grid, Sketch& sketch) {
  const int32_t columns = grid.dims.back(), rows = grid.dims.size() > 1 ? grid.dims[0] : 1;
  const double w = sketch.items[0].width, h = sketch.items[0].height;
  const bool many = std::max(rows, columns) > 12;
  const double dx = w + (many ? 14 : 40), dy = h + (many ? 14 : 40);
  const double margin = kMargin + (many ? 6 : 14);
  const auto at = [&](int32_t r, int32_t c) { return r * columns + c; };
  for (int32_t r = 0; r < rows; ++r) {
    for (int32_t c = 0; c < columns; ++c) {
      DrawnItem& item = sketch.items[static_cast<size_t>(at(r, c))];
      item.x = margin + w / 2 + c * dx;
      item.y = margin + h / 2 + r * dy;
    }
  }
  sketch.width = 2 * margin + w + (columns - 1) * dx;
  sketch.height = 2 * margin + h + (rows - 1) * dy;
  const auto wrap = [&](int32_t from, int32_t to) {
    const DrawnItem &a = sketch.items[static_cast<size_t>(from)], &b = sketch.items[static_cast<size_t>(to)];
    const double out = many ? 7 : 14;
    const double x = a.y == b.y ? w / 2 + out : 0, y = a.x == b.x ? h / 2 + out : 0;
    sketch.shaped.push_back({from,
                             to,
                             {},
                             DrawnCable::Form::kStubs,
                             {{a.x, a.y}, {a.x - x, a.y - y}, {b.x + x, b.y + y}, {b.x, b.y}}});
  };
  if (grid.wraps.back() && columns > 2)
    for (int32_t r = 0; r < rows; ++r) wrap(at(r, 0), at(r, columns - 1));
  if (grid.dims.size() > 1 && grid.wraps[0] && rows > 2)
    for (int32_t c = 0; c < columns; ++c) wrap(at(0, c), at(rows - 1, c));
}

// Planes behind each other, each a little up and to the right. The distance of rows and of columns leaves
// room for all planes between two of them, so no line passes an item.
void PlaceLattice(const DrawnGrid& grid, Sketch& sketch) {
  const int32_t planes = grid.dims[0], rows = grid.dims[1], columns = grid.dims[2];
  const double w = sketch.items[0].width, h = sketch.items[0].height;
  const double ox = w + kGap, oy = h + kGap;
  const double dx = ox * planes + kGap, dy = oy * planes + kGap;
  const double margin = kMargin + 14, up = oy * (planes - 1);
  for (int32_t p = 0; p < planes; ++p) {
    for (int32_t r = 0; r < rows; ++r) {
      for (int32_t c = 0; c < columns; ++c) {
        DrawnItem& item = sketch.items[static_cast<size_t>((p * rows + r) * columns + c)];
        item.x = margin + w / 2 + c * dx + p * ox;
        item.y = margin + h / 2 + up + r * dy - p * oy;
      }
    }
  }
  sketch.width = 2 * margin + w + (columns - 1) * dx + (planes - 1) * ox;
  sketch.height = 2 * margin + h + up + (rows - 1) * dy;
  const double step[3][2] = {{ox, -oy}, {0, dy}, {dx, 0}};
  const int32_t stride[3] = {rows * columns, columns, 1};
  for (size_t k = 0; k < 3; ++k) {
    if (!grid.wraps[k] || grid.dims[k] <= 2) continue;
    const double length = std::hypot(step[k][0], step[k][1]);
    const double reach = (k == 2 ? w / 2 : k == 1 ? h / 2 : std::hypot(w, h) / 2) + 10;
    const double ux = step[k][0] / length * reach, uy = step[k][1] / length * reach;
    for (int32_t i = 0; i < std::ssize(sketch.items); ++i) {
      if (i / stride[k] % grid.dims[k] != 0) continue;
      const int32_t last = i + (grid.dims[k] - 1) * stride[k];
      const DrawnItem &a = sketch.items[static_cast<size_t>(i)], &b = sketch.items[static_cast<size_t>(last)];
      sketch.shaped.push_back({i,
                               last,
                               {},
                               DrawnCable::Form::kStubs,
                               {{a.x, a.y}, {a.x - ux, a.y - uy}, {b.x + ux, b.y + uy}, {b.x, b.y}}});
    }
  }
}

// A cube within a cube; the larger one is the slowest dimension's second half.
void PlaceTesseract(Sketch& sketch) {
  const double w = sketch.items[0].width, h = sketch.items[0].height;
  const double small = 2 * (w + kGap), big = 3.4 * small;
  const double half = big * 0.7 + w / 2 + kMargin;
  for (int32_t v = 0; v < 16; ++v) {
    const double scale = (v & 8) != 0 ? big : small;
    const double x = (v & 1) != 0 ? 0.5 : -0.5, y = (v & 2) != 0 ? 0.5 : -0.5, z = (v & 4) != 0 ? 0.5 : -0.5;
    DrawnItem& item = sketch.items[static_cast<size_t>(v)];
    item.x = half + scale * (x + 0.4 * z);
    item.y = half + scale * (y - 0.4 * z);
  }
  sketch.width = 2 * half;
  sketch.height = 2 * half - w / 2 + h / 2;
}

// ---- Circles ----

using Weights = std::vector<std::vector<std::pair<int32_t, double>>>;  // by item: another, and how strongly

// Turns the circle so that item 0 is at the top, and item 1 on its right half.
void Turn(std::vector<int32_t>& place) {
  const auto n = static_cast<int32_t>(place.size());
  const int32_t top = place[0];
  for (int32_t& at : place) at = (at - top + n) % n;
  if (n > 2 && place[1] > n / 2)
    for (int32_t& at : place) at = (n - at) % n;
}

// Swaps pairs of places while that makes the sum of weight × distance² smaller.
void ImproveCircle(const Weights& weights, std::vector<int32_t>& place) {
  const auto n = static_cast<int32_t>(place.size());
  const auto cost = [&](int32_t item) {
    double sum = 0;
    for (const auto& [other, weight] : weights[static_cast<size_t>(item)]) {
      const int32_t d = std::abs(place[static_cast<size_t>(item)] - place[static_cast<size_t>(other)]);
      const double around = std::min(d, n - d);
      sum += weight * around * around;
    }
    return sum;
  };
  for (int32_t round = 0; round < 12; ++round) {
    bool better = false;
    for (int32_t i = 0; i < n; ++i) {
      for (int32_t j = i + 1; j < n; ++j) {
        const double before = cost(i) + cost(j);
        std::swap(place[static_cast<size_t>(i)], place[static_cast<size_t>(j)]);
        if (cost(i) + cost(j) < before * (1 - 1e-9)) {
          better = true;
        } else {
          std::swap(place[static_cast<size_t>(i)], place[static_cast<size_t>(j)]);
        }
      }
    }
    if (!better) break;
  }
  Turn(place);
}

Sketch Circle(const Topology& topology, std::string shape, bool in_order) {
  Sketch sketch;
  sketch.shape = std::move(shape);
  const std::vector<int32_t> first = Runs(topology.num_nodes(), kMostOnCircle);
  std::vector<int32_t> item_of(static_cast<size_t>(topology.num_nodes()), 0);
  for (size_t i = 0; i + 1 < first.size(); ++i) {
    NodeGroup group;
    for (int32_t v = first[i]; v < first[i + 1]; ++v) {
      group.emplace_back(v);
      item_of[static_cast<size_t>(v)] = static_cast<int32_t>(i);
    }
    sketch.items.push_back(MakeItem(topology, group));
  }
  std::vector<int32_t> place(sketch.items.size());
  std::iota(place.begin(), place.end(), 0);
  if (!in_order) {
    Weights weights(sketch.items.size());
    for (const Link& link : topology.spec().links) {
      const int32_t a = item_of[link.from.index()], b = item_of[link.to.index()];
      if (a == b) continue;
      const double weight = static_cast<double>(link.bandwidth_bytes_per_s) / 1e9;
      weights[static_cast<size_t>(a)].emplace_back(b, weight);
      weights[static_cast<size_t>(b)].emplace_back(a, weight);
    }
    ImproveCircle(weights, place);
  }
  PlaceCircle(place, sketch);
  return sketch;
}

Sketch Grid(const Topology& topology, const GridShape& shape) {
  Sketch sketch;
  sketch.shape = shape.ToString();
  const DrawnGrid grid = Folded(shape);
  sketch.items = GridItems(topology, shape, grid);
  if (grid.dims.size() == 4) {
    PlaceTesseract(sketch);
  } else if (grid.dims.size() == 3) {
    PlaceLattice(grid, sketch);
  } else {
    PlaceFlat(grid, sketch);
  }
  return sketch;
}

}  // namespace

void PlaceCircle(const std::vector<int32_t>& place, Sketch& sketch) {
  const double n = static_cast<double>(place.size());
  double diagonal = 0, w = 0, h = 0;
  for (const DrawnItem& item : sketch.items) {
    diagonal = std::max(diagonal, std::hypot(item.width, item.height));
    w = std::max(w, item.width);
    h = std::max(h, item.height);
  }
  // Neighbours do not touch, and where that is not too far a line past one item misses it.
  const double apart = (diagonal + kGap) / (2 * std::sin(std::numbers::pi / n));
  const double clear = 26 / (1 - std::cos(2 * std::numbers::pi / n));
  const double radius = std::max({110.0, apart, std::min(clear, 340.0)});
  for (size_t i = 0; i < sketch.items.size(); ++i) {
    const double angle = 2 * std::numbers::pi * place[i] / n;
    sketch.items[i].x = kMargin + w / 2 + radius * (1 + std::sin(angle));
    sketch.items[i].y = kMargin + h / 2 + radius * (1 - std::cos(angle));
  }
  sketch.width = 2 * (kMargin + radius) + w;
  sketch.height = 2 * (kMargin + radius) + h;
}

Sketch DirectSketch(const Topology& topology) {
  const Neighbours neighbours = NeighboursOf(topology);
  const int32_t n = topology.num_nodes();
  if (n >= 4 && IsFullMesh(neighbours)) return Circle(topology, fmt::format("full mesh {}", n), true);
  const std::optional<GridShape> shape = FindGrid(neighbours);
  if (shape) {
    const size_t dims = shape->dims.size();
    if (dims == 1 && shape->wraps[0]) return Circle(topology, shape->ToString(), true);
    if (dims <= 3 || (dims == 4 && n == 16)) return Grid(topology, *shape);
  }
  return Circle(topology, shape ? shape->ToString() : fmt::format("{} GPUs joined directly", n), false);
}

}  // namespace xccl
