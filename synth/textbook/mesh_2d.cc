// Rows first, then columns. All ranks of a line exchange data directly, so a rank has 2 (sqrt n - 1) partners
// instead of n - 1. On a mesh or torus, the lines are the machine's links, and messages pass through
// the ranks between.
// alltoall: a rank hands each rank of its row the blocks for the other's column. Then the blocks are handed
// on within the column: 2 alpha + 2 S beta if all ranks are neighbours (Kale, Kumar and Varadarajan, IPDPS
// 2003). allgather: own blocks go along rows, then the blocks of the row along columns. If ranks have a link
// for each neighbour, a share of every block starts with each dimension (Barnett et al., 1994).
// allreduce on a mesh or torus, of large sizes: many trees, each with its share of the data (grid_trees.h).
// broadcast on a mesh or torus of two dimensions: two trees that share no link carry half of the data each.
// One tree goes along the root's row and then along all other columns. It enters the root's column from the
// column beside. The other tree swaps rows and columns. The time is S/2 beta + (rows + columns - 2) alpha
// from a corner, and one alpha more if a side is 2. A corner has two links, so no broadcast on a mesh takes
// less than S/2 beta.
#include <cmath>

#include "synth/common/cost_model.h"
#include "synth/textbook/arrange.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/grid_trees.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

// Returns a round for each dimension, from `first` on: all ranks of a line send to each other.
Rounds LineRounds(const Arrangement& a, size_t first) {
  Rounds rounds{a.positions, {}};
  for (size_t i = 0; i < a.grid.dims.size(); ++i) {
    const size_t dim = (first + i) % a.grid.dims.size();
    rounds.rounds.push_back(LineRound(rounds.size(), a.grid.dims[dim], a.grid.Stride(dim)));
  }
  return rounds;
}

// Adds one tree of a broadcast: along dimension `first` through the root, then along the other dimension.
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

Recipe TreesRecipe(GridTrees trees, const Arrangement& arrangement) {
  Recipe recipe;
  recipe.pieces = static_cast<int32_t>(trees.trees.size());
  for (const GridTree& tree : trees.trees) recipe.weights.push_back(tree.weight);
  recipe.cost = trees.cost;
  recipe.pipelines = true;
  recipe.allreduce = [trees = std::move(trees), positions = arrangement.positions](
                         ChunkRange all, Moves& moves) { AddGridAllreduce(trees, positions, all, moves); };
  return recipe;
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
  if (request.collective->kind() == CollectiveKind::kAllreduce && arrangement.is_machine && dims > 1 &&
      dims <= kMostTreeDims) {
    const int64_t most = request.size_bytes / LeastUsefulBytes(graph.topology());
    GridTrees trees = PackGridTrees(arrangement.grid, graph, most);
    const Cost lines = GridAllgatherCost(arrangement.grid, graph, true);
    if (!trees.trees.empty() && trees.cost.Ps(request) < 2 * lines.Ps(request))
      return TreesRecipe(std::move(trees), arrangement);
  }
  std::vector<Rounds> stripes = {LineRounds(arrangement, 0)};
  if (base == Base::kAllgather && !HasSharedPorts(graph))
    for (size_t first = 1; first < dims; ++first) stripes.push_back(LineRounds(arrangement, first));
  std::optional<Cost> cost;
  if (arrangement.is_machine) cost = GridAllgatherCost(arrangement.grid, graph, true);
  return RoundsRecipe(std::move(stripes), graph, request, cost);
}

}  // namespace xccl
