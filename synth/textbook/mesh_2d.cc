// Rows, then columns. In a dimension all ranks of a line exchange what they have directly, so that a rank
// meets 2 (sqrt n - 1) others in place of n - 1. alltoall: a rank hands everyone of its row what is for that
// one's column, and what came is handed on in the column: 2 alpha + 2 S beta where all are next to each other
// (the mesh strategy of Kale, Kumar and Varadarajan, IPDPS 2003). allgather: columns' blocks follow the rows'
// own; on links of their own one share of every block starts with each dimension (Barnett et al., 1994).
// Where the machine is a mesh or torus, lines are its links and a message passes the ranks between. There a
// broadcast goes down two trees that share no link, half of the data each: along the root's row and from it
// along the columns, and the other way about; what the first cannot reach, the root's column, it enters from
// the column beside. S/2 beta + (rows + columns - 2) alpha from a corner, one alpha more where a side is 2: a
// corner has two links, so that no broadcast on a mesh takes less than S/2 beta.
#include <cmath>

#include "synth/textbook/arrange.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

// A round a dimension, from `first` on: everyone to everyone of its line.
Rounds LineRounds(const Arrangement& a, size_t first) {
  Rounds rounds{a.positions, {}};
  for (size_t i = 0; i < a.grid.dims.size(); ++i) {
    const size_t dim = (first + i) % a.grid.dims.size();
    rounds.rounds.push_back(LineRound(rounds.size(), a.grid.dims[dim], a.grid.Stride(dim)));
  }
  return rounds;
}

// One of the two trees of a broadcast: along dimension `first` through the root, then along the other one.
void AddMeshTree(const Arrangement& a, size_t first, int32_t root, ChunkRange share, Moves& moves) {
  const int32_t along = a.grid.dims[first], along_stride = a.grid.Stride(first);
  const int32_t across = a.grid.dims[1 - first], across_stride = a.grid.Stride(1 - first);
  const int32_t x0 = root / along_stride % along, y0 = root / across_stride % across;
  const auto at = [&](int32_t x, int32_t y) {
    return a.positions.rank[x * along_stride + y * across_stride];
  };
  for (int32_t x = 0; x < along; ++x)
    if (x != x0) moves.Add({share, at(x < x0 ? x + 1 : x - 1, y0), at(x, y0), std::abs(x - x0) - 1});
  const int32_t beside = x0 + 1 < along ? x0 + 1 : x0 - 1;
  for (int32_t y = 0; y < across; ++y) {
    if (y == y0) continue;
    const int32_t step = std::abs(y - y0) - 1;
    for (int32_t x = 0; x < along; ++x)
      if (x != x0) moves.Add({share, at(x, y < y0 ? y + 1 : y - 1), at(x, y), step + std::abs(x - x0)});
    moves.Add({share, at(beside, y), at(x0, y), step + 2});
  }
}

}  // namespace

StatusOr<Recipe> PlaceMesh2d(const RankGraph& graph, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(Arrangement arrangement, Arrange(graph, request.collective->ranks(), "2d-mesh"));
  const Base base = BaseOf(request.collective->kind());
  const size_t dims = arrangement.grid.dims.size();
  if (base == Base::kBroadcast && arrangement.is_machine && dims == 2) {
    Recipe recipe;
    recipe.pieces = 2;
    recipe.pipelines = true;
    recipe.broadcast = [arrangement = std::move(arrangement)](Rank root, ChunkRange all, Moves& moves) {
      for (size_t first : {0u, 1u})
        AddMeshTree(arrangement, first, arrangement.positions.Of(root),
                    Piece(all, static_cast<int32_t>(first), 2), moves);
    };
    return recipe;
  }
  std::vector<Rounds> stripes = {LineRounds(arrangement, 0)};
  if (base == Base::kAllgather && !HasSharedPorts(graph))
    for (size_t first = 1; first < dims; ++first) stripes.push_back(LineRounds(arrangement, first));
  std::optional<Cost> cost;
  if (arrangement.is_machine) cost = GridAllgatherCost(arrangement.grid, graph, true);
  return RoundsRecipe(std::move(stripes), graph, request, cost);
}

}  // namespace xccl
