// DetectGrid tries the few chains of strides that the neighbours of rank 0 allow, and compares all links.
// Cycles of a torus: a 2-factor gives every vertex two of its edges, so it consists of cycles. The rings of
// one dimension are a 2-factor. The k dimensions give k 2-factors, which together use every edge. Two factors
// can exchange opposite sides of a unit square, which may join rings. TorusCycles repeats exchanges until
// every factor is one cycle (Aubert and Schneider, 1982, prove that k such cycles exist). A pair of
// dimensions of 2 counts as one ring of 4.
// Open dimensions are added last. TimesPath copies the cycles along the open dimension and joins neighbouring
// copies: two rungs between the copies replace an edge that both have. If no dimension is closed, MeshCycle
// makes one cycle, which snakes through the mesh and comes back along one line. Time: near-linear in the
// vertices, except on tori: squares tried × vertices.
#include "synth/textbook/grid.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <set>

#include "base/random.h"

namespace xccl {
namespace {

using Cycle = std::vector<int32_t>;

// A graph in which every vertex has two neighbours.
class Factor {
 public:
  explicit Factor(int32_t vertices) : next_(static_cast<size_t>(vertices), {-1, -1}) {}
  static Factor FromCycle(const Cycle& cycle) {
    Factor factor(static_cast<int32_t>(cycle.size()));
    for (size_t i = 0; i < cycle.size(); ++i) factor.Join(cycle[i], cycle[(i + 1) % cycle.size()]);
    return factor;
  }
  void Join(int32_t a, int32_t b) {
    Slot(a, -1) = b;
    Slot(b, -1) = a;
  }
  bool Has(int32_t a, int32_t b) const { return next_[a][0] == b || next_[a][1] == b; }
  // Replaces the edges a-b and c-d by a-c and b-d.
  void Exchange(int32_t a, int32_t b, int32_t c, int32_t d) {
    Slot(a, b) = c;
    Slot(b, a) = d;
    Slot(c, d) = a;
    Slot(d, c) = b;
  }
  Cycle Walk(int32_t start) const {
    Cycle cycle = {start};
    int32_t previous = start, at = next_[start][0];
    while (at != start) {
      cycle.push_back(at);
      const int32_t onwards = next_[at][0] == previous ? next_[at][1] : next_[at][0];
      previous = at;
      at = onwards;
    }
    return cycle;
  }
  // Sets label[v] to the number of the cycle through v. Returns the number of cycles.
  int32_t Label(std::vector<int32_t>& label) const {
    label.assign(next_.size(), -1);
    int32_t count = 0;
    for (int32_t v = 0; v < static_cast<int32_t>(next_.size()); ++v) {
      if (label[v] >= 0) continue;
      for (int32_t at : Walk(v)) label[at] = count;
      ++count;
    }
    return count;
  }

 private:
  int32_t& Slot(int32_t at, int32_t to) { return next_[at][0] == to ? next_[at][0] : next_[at][1]; }
  std::vector<std::array<int32_t, 2>> next_;
};

// Returns one Hamiltonian cycle for each dimension of a torus whose dims are all >= 3. The cycles share no
// edge. Returns no cycles if the search runs out of work.
std::vector<Cycle> TorusCycles(const std::vector<int32_t>& dims) {
  const int32_t n = std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>());
  std::vector<int32_t> stride(dims.size(), 1);
  for (size_t i = dims.size() - 1; i-- > 0;) stride[i] = stride[i + 1] * dims[i + 1];
  const auto step = [&](int32_t v, size_t dim) {
    const int32_t x = v / stride[dim] % dims[dim];
    return v + ((x + 1) % dims[dim] - x) * stride[dim];
  };
  std::vector<Factor> factors;
  for (size_t i = 0; i < dims.size(); ++i) {
    factors.emplace_back(n);
    for (int32_t v = 0; v < n; ++v) factors[i].Join(v, step(v, i));
  }
  if (dims.size() == 1) return {factors[0].Walk(0)};
  std::vector<int32_t> cycles;
  std::vector<std::vector<int32_t>> label(factors.size());
  for (size_t f = 0; f < factors.size(); ++f) cycles.push_back(factors[f].Label(label[f]));
  Random random(1);
  const auto owner = [&](int32_t a, int32_t b) {
    for (size_t f = 0; f < factors.size(); ++f)
      if (factors[f].Has(a, b)) return f;
    return factors.size();
  };
  int64_t work = 5'000'000;  // vertices that the search may walk; a torus of 1,024 ranks needs far fewer
  const auto left = [&] {
    return std::accumulate(cycles.begin(), cycles.end(), 0) - static_cast<int32_t>(dims.size());
  };
  while (left() > 0 && work > 0) {
    const int32_t p = static_cast<int32_t>(random.Below(static_cast<uint64_t>(n)));
    const size_t i = random.Below(dims.size()), j = random.Below(dims.size());
    --work;
    if (i == j) continue;
    const int32_t q = step(p, i), r = step(p, j), s = step(q, j);
    const size_t a = owner(p, q), b = owner(p, r);
    if (a == b || owner(r, s) != a || owner(q, s) != b) continue;
    // Factor a replaces p-q and r-s by p-r and q-s; factor b does the reverse. A factor's exchange joins two
    // cycles if its two edges lie on different cycles.
    if (label[a][p] == label[a][r] && label[b][p] == label[b][q]) continue;
    factors[a].Exchange(p, q, r, s);
    factors[b].Exchange(p, r, q, s);
    const int32_t in_a = factors[a].Label(label[a]), in_b = factors[b].Label(label[b]);
    work -= 2 * n;
    if (in_a + in_b <= cycles[a] + cycles[b]) {
      cycles[a] = in_a;
      cycles[b] = in_b;
    } else {
      factors[a].Exchange(p, r, q, s);
      factors[b].Exchange(p, q, r, s);
      factors[a].Label(label[a]);
      factors[b].Label(label[b]);
    }
  }
  if (left() > 0) return {};
  std::vector<Cycle> walks;
  for (const Factor& factor : factors) walks.push_back(factor.Walk(0));
  return walks;
}

// Returns a Hamiltonian path of a mesh: the lines of the last dimension, in turn forwards and backwards.
Cycle Snake(const std::vector<int32_t>& dims) {
  Cycle path = {0};
  int32_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    Cycle longer;
    for (int32_t x = 0; x < dims[i]; ++x) {
      for (size_t k = 0; k < path.size(); ++k)
        longer.push_back(x * stride + path[x % 2 == 0 ? k : path.size() - 1 - k]);
    }
    path = std::move(longer);
    stride *= dims[i];
  }
  return path;
}

// Returns one cycle through a mesh with two or more dimensions and an even side; no cycle for other meshes.
// `path` goes through the other dimensions. For each coordinate along the even side, the cycle follows `path`
// except its first vertex, in turn forwards and backwards. It returns along the even side at the first
// vertex.
std::vector<Cycle> MeshCycle(const std::vector<int32_t>& dims) {
  const auto even = std::find_if(dims.begin(), dims.end(), [](int32_t d) { return d % 2 == 0; });
  if (even == dims.end() || dims.size() < 2) return {};
  const size_t e = static_cast<size_t>(even - dims.begin());
  std::vector<int32_t> others = dims;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(e));
  int32_t below = 1;  // stride of the even side
  for (size_t i = e + 1; i < dims.size(); ++i) below *= dims[i];
  const Cycle path = Snake(others);
  const auto vertex = [&](int32_t along, int32_t other) {
    return other / below * below * dims[e] + along * below + other % below;
  };
  Cycle cycle;
  for (int32_t x = 0; x < dims[e]; ++x)
    for (size_t k = 1; k < path.size(); ++k)
      cycle.push_back(vertex(x, path[x % 2 == 0 ? k : path.size() - k]));
  for (int32_t x = dims[e] - 1; x >= 0; --x) cycle.push_back(vertex(x, path[0]));
  return {cycle};
}

// Returns the cycles of (graph × path of m vertices) that can be joined from copies of the graph's cycles.
// Vertex (v, t) is t * n + v.
std::vector<Cycle> TimesPath(const std::vector<Cycle>& base, int32_t m) {
  const int32_t n = static_cast<int32_t>(base[0].size());
  std::vector<std::vector<bool>> rung_used(static_cast<size_t>(m), std::vector<bool>(static_cast<size_t>(n)));
  std::vector<Cycle> made;
  for (const Cycle& cycle : base) {
    Factor factor(n * m);
    for (int32_t t = 0; t < m; ++t)
      for (int32_t i = 0; i < n; ++i) factor.Join(t * n + cycle[i], t * n + cycle[(i + 1) % n]);
    bool joined = true;
    for (int32_t t = 0; t + 1 < m && joined; ++t) {
      joined = false;
      for (int32_t i = 0; i < n && !joined; ++i) {
        const int32_t u = cycle[i], v = cycle[(i + 1) % n];
        if (rung_used[t][u] || rung_used[t][v]) continue;
        if (!factor.Has(t * n + u, t * n + v) || !factor.Has((t + 1) * n + u, (t + 1) * n + v)) continue;
        factor.Exchange(t * n + u, t * n + v, (t + 1) * n + u, (t + 1) * n + v);
        rung_used[t][u] = rung_used[t][v] = joined = true;
      }
    }
    if (joined) made.push_back(factor.Walk(0));
  }
  return made;
}

bool SameLinks(const RankGraph& graph, const Grid& grid) {
  int64_t found = 0;
  for (int32_t v = 0; v < grid.num_ranks(); ++v) {
    for (size_t i = 0; i < grid.dims.size(); ++i) {
      const int32_t d = grid.dims[i], stride = grid.Stride(i), x = v / stride % d;
      for (int32_t y : {x - 1, x + 1}) {
        if (!grid.wraps[i] && (y < 0 || y >= d)) continue;
        const auto hop = graph.Find(Rank(v), Rank(v + ((y + d) % d - x) * stride));
        if (!hop || graph.hop(*hop).num_links != 1) return false;
        found += graph.Parallel(*hop);
      }
    }
  }
  return found == graph.num_hops();
}

}  // namespace

int32_t Grid::num_ranks() const { return std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>()); }

int32_t Grid::Stride(size_t dim) const {
  return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(dim) + 1, dims.end(), 1,
                         std::multiplies<>());
}

std::optional<Grid> DetectGrid(const RankGraph& graph) {
  const int32_t n = graph.num_ranks();
  std::set<int32_t> near;
  for (HopId h = graph.FirstOut(Rank(0)); h < graph.EndOut(Rank(0)); ++h.value)
    near.insert(graph.hop(h).to.value);
  if (n < 2 || near.size() > 60 || !near.contains(1)) return std::nullopt;
  // The search goes from small strides to large ones, so it fills grid.dims from the fastest dimension.
  Grid grid;
  const auto search = [&](auto&& self, int32_t stride) -> bool {
    if (stride == n) {
      Grid found = grid;
      std::reverse(found.dims.begin(), found.dims.end());
      std::reverse(found.wraps.begin(), found.wraps.end());
      if (!SameLinks(graph, found)) return false;
      grid = std::move(found);
      return true;
    }
    if (!near.contains(stride)) return false;
    for (int32_t d = 2; int64_t{stride} * d <= n; ++d) {
      if (n % (stride * d) != 0 || (stride * d != n && !near.contains(stride * d))) continue;
      const bool wraps = d > 2 && near.contains((d - 1) * stride);
      grid.dims.push_back(d);
      grid.wraps.push_back(wraps);
      if (self(self, stride * d)) return true;
      grid.dims.pop_back();
      grid.wraps.pop_back();
    }
    return false;
  };
  if (!search(search, 1)) return std::nullopt;
  return grid;
}

std::vector<Cycle> DisjointCycles(const Grid& grid) {
  // Renumbers vertices: closed dimensions and pairs of 2 become the fastest, open dimensions the slowest.
  std::vector<std::vector<size_t>> stands;  // slowest first: the old dimensions of each new dimension
  std::vector<size_t> open, twos;
  for (size_t i = 0; i < grid.dims.size(); ++i)
    grid.wraps[i] ? stands.push_back({i}) : (grid.dims[i] == 2 ? twos : open).push_back(i);
  if (twos.size() % 2 == 1) {
    open.push_back(twos.back());
    twos.pop_back();
  }
  for (size_t k = 0; k < twos.size(); k += 2) stands.push_back({twos[k], twos[k + 1]});
  const auto sizes = [&] {
    std::vector<int32_t> dims;
    for (const std::vector<size_t>& of : stands) dims.push_back(of.size() == 2 ? 4 : grid.dims[of[0]]);
    return dims;
  };
  std::vector<Cycle> cycles;
  if (stands.empty()) {
    for (size_t i : open) stands.push_back({i});
    cycles = MeshCycle(sizes());
  } else {
    cycles = TorusCycles(sizes());
    for (size_t i : open) {
      if (cycles.empty()) return {};
      cycles = TimesPath(cycles, grid.dims[i]);
      stands.insert(stands.begin(), std::vector{i});
    }
  }
  const std::vector<int32_t> dims = sizes();
  for (Cycle& cycle : cycles) {
    for (int32_t& v : cycle) {
      int32_t rest = v, real = 0;
      for (size_t i = dims.size(); i-- > 0;) {
        const int32_t x = rest % dims[i];
        rest /= dims[i];
        if (stands[i].size() == 1) {
          real += x * grid.Stride(stands[i][0]);
        } else {  // a pair of 2, round a square: 00 01 11 10
          real += (x / 2) * grid.Stride(stands[i][0]) + ((x + 1) / 2 % 2) * grid.Stride(stands[i][1]);
        }
      }
      v = real;
    }
  }
  return cycles;
}

std::vector<Cycle> CompleteCycles(int32_t n) {
  std::vector<Cycle> cycles;
  // Cycle k joins the last vertex with both ends of a zigzag through the other vertices, which stand on a
  // circle. The zigzag is rotated by k places. If n is even, a perfect matching stays unused.
  const int32_t circle = n - 1;
  const int32_t count = (n - 1) / 2;
  for (int32_t k = 0; k < count; ++k) {
    Cycle cycle = {n - 1};
    for (int32_t i = 0; i < circle; ++i) {
      const int32_t offset = i % 2 == 0 ? i / 2 : circle - (i + 1) / 2;
      cycle.push_back((k + offset) % circle);
    }
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

}  // namespace xccl
