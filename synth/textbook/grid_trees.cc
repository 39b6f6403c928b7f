// Trees of one order of dimensions load the links of their first dimension, of side n, with all of their data
// each way. They load the links of the second dimension with 1/n of it. Closed dimensions carry a little less
// (LoadsOf). Roots are spread evenly over the first dimension, so that all links of a dimension carry about
// the same load.
// A linear program chooses each order's share of the data so that the fullest links are least full
// (SharesOf). All links of a mesh of two dimensions and one bandwidth then carry (N-1) / E of the data each
// way, for N ranks and E cables. No packing does better, because every tree has N-1 edges. The share of an
// order is the number of cables along its second dimension ÷ E.
// The data goes in waves. In a wave, each tree has one turn. Links serve sums and copies in the order of
// their steps, and trees start kStepsOfTurn steps apart; otherwise the sums of a whole tree would hold up the
// copies of another tree. More waves come nearer to the bound, but need more transfers. On a ring, a tree
// cuts each line opposite to its root, so that cuts are spread because roots are.
#include "synth/textbook/grid_trees.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/graph/lp.h"
#include "synth/common/cost_model.h"

namespace xccl {
namespace {

// The unit of the trees' weights, as a fraction of a wave. A tree's share is off by at most one unit.
constexpr double kWeightUnit = 1e-6;
// The most waves. Twice as many would gain 2 %.
constexpr int64_t kMostWaves = 32;
// The steps from the start of a tree to the start of the next. With one step, copies of a tree on a large
// mesh wait for sums of trees that start a wave later; with many, sums of trees that start later wait for all
// copies. Time / bound of 1 GiB with 1, 2, 4 and 16 steps (2026-11-30): mesh 32x32 1.234, 1.142, 1.138 and
// 1.201; 16x32 1.155, 1.162, 1.165 and 1.166; 8x8 1.026, 1.026, 1.031 and 1.031.
constexpr int32_t kStepsOfTurn = 2;

// Returns the average load on a link of each dimension, as a fraction of the data of the order's trees.
std::vector<double> LoadsOf(const Grid& grid, const std::vector<size_t>& order) {
  std::vector<double> loads(grid.dims.size());
  double lines = 1;  // share of the lines of the dimension that a tree holds
  for (const size_t dim : order) {
    const double n = grid.dims[dim];
    loads[dim] = lines * (grid.wraps[dim] ? (n - 1) / n : 1);
    lines /= n;
  }
  return loads;
}

// Returns each order's share of the data. Sets `fullest` to the picoseconds of a byte on the fullest links.
std::vector<double> SharesOf(const std::vector<std::vector<double>>& loads,
                             const std::vector<double>& ps_per_byte, double& fullest) {
  const size_t orders = loads.size();
  const double unit = std::ranges::max(ps_per_byte);
  std::vector<double> costs(orders + 1, 0);  // the last variable is 2 - the load of the fullest links
  costs.back() = 1;
  LinearProgram program(costs);
  std::vector<std::pair<int32_t, double>> row;
  for (size_t k = 0; k < orders; ++k) row.emplace_back(static_cast<int32_t>(k), 1);
  program.AddRow(row, 1, 1);
  for (size_t dim = 0; dim < ps_per_byte.size(); ++dim) {
    row.clear();
    for (size_t k = 0; k < orders; ++k)
      row.emplace_back(static_cast<int32_t>(k), loads[k][dim] * ps_per_byte[dim] / unit);
    row.emplace_back(static_cast<int32_t>(orders), 1);
    program.AddRow(row, -LinearProgram::kInfinity, 2);
  }
  std::vector<double> shares(orders, 1.0 / static_cast<double>(orders));
  if (program.Solve())
    for (size_t k = 0; k < orders; ++k) shares[k] = std::max(0.0, program.Values()[k]);
  fullest = 0;
  for (size_t dim = 0; dim < ps_per_byte.size(); ++dim) {
    double load = 0;
    for (size_t k = 0; k < orders; ++k) load += shares[k] * loads[k][dim] * ps_per_byte[dim];
    fullest = std::max(fullest, load);
  }
  return shares;
}

int32_t Coordinate(const Grid& grid, int32_t vertex, size_t dim) {
  return vertex / grid.Stride(dim) % grid.dims[dim];
}

// Returns 1 or -1, the change of the coordinate x in a step towards `root`; on a ring, the shorter way round.
int32_t StepTowards(const Grid& grid, size_t dim, int32_t x, int32_t root) {
  const int32_t n = grid.dims[dim];
  if (!grid.wraps[dim]) return x < root ? 1 : -1;
  return 2 * ((root - x + n) % n) <= n ? 1 : -1;
}

int32_t Distance(const Grid& grid, size_t dim, int32_t x, int32_t root) {
  const int32_t apart = std::abs(x - root);
  return grid.wraps[dim] ? std::min(apart, grid.dims[dim] - apart) : apart;
}

// Returns the most steps from a rank to the tree's root.
int32_t DepthOf(const Grid& grid, const GridTree& tree) {
  int32_t depth = 0;
  for (size_t dim = 0; dim < grid.dims.size(); ++dim) {
    const int32_t n = grid.dims[dim], x = tree.root[dim];
    depth += grid.wraps[dim] ? n / 2 : std::max(x, n - 1 - x);
  }
  return depth;
}

// Returns trees that together carry a wave of the data, in the order in which they take their turns. Roots
// are spread evenly over the first dimension of an order. They are also spread over another dimension if the
// links of a tree depend on the root's coordinate in it. Otherwise roots stay in the middle of it, which is
// near to all ranks.
std::vector<GridTree> WaveOf(const Grid& grid, const std::vector<std::vector<size_t>>& orders,
                             const std::vector<double>& shares) {
  std::vector<std::pair<double, GridTree>> turns;
  for (size_t k = 0; k < orders.size(); ++k) {
    const std::vector<size_t>& order = orders[k];
    const int32_t roots = grid.dims[order[0]];
    const auto weight = static_cast<int64_t>(std::llround(shares[k] / roots / kWeightUnit));
    for (int32_t i = 0; weight > 0 && i < roots; ++i) {
      GridTree tree{order, {}, weight};
      for (const int32_t n : grid.dims) tree.root.push_back(n / 2);
      tree.root[order[0]] = i;
      for (size_t d = 1; d < order.size(); ++d)
        if (d + 1 < order.size() || grid.wraps[order[d]])
          tree.root[order[d]] = i * grid.dims[order[d]] / roots;
      // Neighbouring roots take their turns far apart (Fibonacci hashing), so that sums towards one root and
      // copies from the next seldom wait for the same links.
      turns.emplace_back(std::fmod(i * (std::numbers::phi - 1), 1.0), std::move(tree));
    }
  }
  std::ranges::stable_sort(turns, {}, &std::pair<double, GridTree>::first);
  std::vector<GridTree> wave;
  for (auto& [turn, tree] : turns) wave.push_back(std::move(tree));
  return wave;
}

}  // namespace

GridTrees PackGridTrees(const Grid& grid, const RankGraph& graph, int64_t most_trees) {
  GridTrees packed{grid, {}, {}};
  std::vector<double> ps_per_byte;
  int64_t latency_ps = 0;
  for (size_t dim = 0; dim < grid.dims.size(); ++dim) {
    int64_t narrowest = std::numeric_limits<int64_t>::max();
    for (int32_t v = 0; v < grid.num_ranks(); ++v) {
      if (Coordinate(grid, v, dim) + 1 == grid.dims[dim]) continue;
      const Rank a(v), b(v + grid.Stride(dim));
      for (const HopId h : {*graph.Find(a, b), *graph.Find(b, a)}) {
        narrowest = std::min(narrowest, graph.hop(h).bandwidth_bytes_per_s);
        latency_ps = std::max(latency_ps, graph.hop(h).latency_ps);
      }
    }
    ps_per_byte.push_back(1e12 / static_cast<double>(narrowest));
  }
  std::vector<size_t> order(grid.dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<size_t>> orders;
  std::vector<std::vector<double>> loads;
  do {
    orders.push_back(order);
    loads.push_back(LoadsOf(grid, order));
  } while (std::ranges::next_permutation(order).found);
  const std::vector<double> shares = SharesOf(loads, ps_per_byte, packed.cost.ps_per_byte);
  const std::vector<GridTree> wave = WaveOf(grid, orders, shares);
  if (std::ssize(wave) > most_trees) return packed;
  const int64_t affordable = std::min(most_trees, kManyTransfers / (2 * (grid.num_ranks() - 1)));
  const auto waves = static_cast<int32_t>(std::clamp<int64_t>(affordable / std::ssize(wave), 1, kMostWaves));
  for (int32_t w = 0; w < waves; ++w) packed.trees.insert(packed.trees.end(), wave.begin(), wave.end());
  int32_t depth = 0;
  for (const GridTree& tree : wave) depth = std::max(depth, DepthOf(grid, tree));
  packed.cost.fixed_ps = 2.0 * depth * static_cast<double>(latency_ps);
  // `beside` is the number of trees, at most a wave, that start while the sums of one tree go up and its
  // copies come down. The copies of a tree run beside the sums of later trees. At the start, the sums of
  // about a quarter as many trees have nothing beside them; at the end, the copies of as many trees.
  const auto count = static_cast<double>(packed.trees.size());
  const double beside = std::min<double>(2.0 * depth / kStepsOfTurn, static_cast<double>(wave.size()));
  packed.cost.ps_per_byte *= (count + 1.5 * beside) / (count + beside);
  return packed;
}

void AddGridAllreduce(const GridTrees& packed, const Positions& positions, ChunkRange all, Moves& moves) {
  const Grid& grid = packed.grid;
  int64_t total = 0, before = 0;
  int32_t most = 0;
  for (const GridTree& tree : packed.trees) {
    total += tree.weight;
    most = std::max(most, DepthOf(grid, tree));
  }
  const auto trees = static_cast<int32_t>(packed.trees.size());
  moves.Reserve(2 * packed.trees.size() * static_cast<size_t>(grid.num_ranks()));
  for (int32_t t = 0; t < trees; ++t) {
    const GridTree& tree = packed.trees[static_cast<size_t>(t)];
    const auto at = [&](int64_t weight) { return static_cast<int32_t>(all.count * weight / total); };
    const int32_t first = all.count == trees ? t : at(before),
                  end = all.count == trees ? t + 1 : at(before + tree.weight);
    before += tree.weight;
    const ChunkRange share{all.first + first, end - first};
    for (int32_t v = 0; v < grid.num_ranks(); ++v) {
      int32_t above = v, depth = 0;
      for (const size_t dim : tree.order) {
        const int32_t x = Coordinate(grid, v, dim), root = tree.root[dim];
        if (above == v && x != root) {
          const int32_t to = (x + StepTowards(grid, dim, x, root) + grid.dims[dim]) % grid.dims[dim];
          above = v + (to - x) * grid.Stride(dim);
        }
        depth += Distance(grid, dim, x, root);
      }
      if (above == v) continue;
      const Rank child = positions.rank[v], parent = positions.rank[above];
      const int32_t middle = t * kStepsOfTurn + most;
      moves.Add({share, child, parent, middle - depth, TransferOp::kReduce});
      moves.Add({share, parent, child, middle + depth - 1, TransferOp::kCopy});
    }
  }
}

}  // namespace xccl
