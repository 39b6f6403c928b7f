#include "synth/textbook/arrange.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace xccl {

StatusOr<Arrangement> Arrange(const RankGraph& graph, std::span<const Rank> members,
                              std::string_view engine) {
  const int32_t n = static_cast<int32_t>(members.size());
  Arrangement made;
  if (n == graph.num_ranks()) {
    if (std::optional<Grid> grid = DetectGrid(graph); grid && (grid->dims.size() > 1 || n <= 3)) {
      made.grid = *std::move(grid);
      made.is_machine = true;
      made.positions = RankPositions(members);
      return made;
    }
  }
  for (Rank a : members)
    for (Rank b : members)
      if (a != b && !graph.Find(a, b))
        return InvalidInput(fmt::format(
            "{}: the {} ranks form no grid, and ranks {} and {} are not next to each other; expected a "
            "grid or torus of two or more dimensions, or all next to each other; hint: --engine=ring",
            engine, n, a.value, b.value));
  int32_t rows = 1;
  for (int32_t d = 2; d * d <= n; ++d)
    if (n % d == 0) rows = d;
  if (rows == 1 && n > 3)
    return InvalidInput(
        fmt::format("{}: {} ranks do not split into rows and columns; hint: --engine=ring", engine, n));
  if (n > 1) {
    if (rows > 1) made.grid.dims = {n / rows, rows};
    if (rows == 1) made.grid.dims = {n};
    for (int32_t d : made.grid.dims) made.grid.wraps.push_back(d > 2);
  }
  made.positions = DomainPositions(graph, members);
  return made;
}

bool HasSharedPorts(const RankGraph& graph) {
  for (int32_t h = 0; h < graph.num_hops(); ++h)
    if (graph.hop(HopId(h)).num_links > 1) return true;
  return false;
}

Cost GridAllgatherCost(const Grid& grid, const RankGraph& graph, bool all_at_once) {
  int64_t narrowest = std::numeric_limits<int64_t>::max(), latency = 0;
  for (int32_t h = 0; h < graph.num_hops(); ++h) {
    narrowest = std::min(narrowest, graph.hop(HopId(h)).bandwidth_bytes_per_s);
    latency = std::max(latency, graph.hop(HopId(h)).latency_ps);
  }
  const bool shared = HasSharedPorts(graph);
  Cost cost;
  double share = 1.0 / grid.num_ranks();
  for (size_t i = 0; i < grid.dims.size(); ++i) {
    const int32_t d = grid.dims[i];
    cost.fixed_ps += static_cast<double>(latency) * (grid.wraps[i] ? d / 2 : d - 1);
    cost.ps_per_byte +=
        (d - 1) * share / (grid.wraps[i] && !shared ? 2 : 1) * 1e12 / static_cast<double>(narrowest);
    share *= d;
  }
  if (all_at_once && !shared && !grid.dims.empty()) cost.ps_per_byte /= static_cast<double>(grid.dims.size());
  return cost;
}

}  // namespace xccl
