#include "synth/textbook/arrange.h"

#include <fmt/format.h>

#include "synth/textbook/positions.h"

namespace xccl {

StatusOr<Arrangement> Arrange(const RankGraph& graph, std::span<const Rank> members,
                              std::string_view engine) {
  const int32_t n = static_cast<int32_t>(members.size());
  Arrangement made;
  if (n == graph.num_ranks()) {
    if (std::optional<Grid> grid = DetectGrid(graph); grid && (grid->dims.size() > 1 || n <= 3)) {
      made.grid = *std::move(grid);
      made.is_machine = true;
      made.rank.resize(members.size());
      made.member.resize(members.size());
      for (int32_t m = 0; m < n; ++m) {
        made.rank[members[m].index()] = members[m];
        made.member[members[m].index()] = m;
      }
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
  const Positions positions = DomainPositions(graph, members);
  made.rank = positions.rank;
  made.member = positions.member;
  return made;
}

}  // namespace xccl
