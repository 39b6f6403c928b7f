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
class MeshTree {
 public:
  MeshTree(const Arrangement& a, size_t first, int32_t root)
      : a_(a),
        along_(a.grid.dims[first]),
        across_(a.grid.dims[1 - first]),
        along_stride_(a.grid.Stride(first)),
        across_stride_(a.grid.Stride(1 - first)),
        x0_(root / along_stride_ % along_),
        y0_(root / across_stride_ % across_) {}

  void Broadcast(ChunkRange share, Moves& moves) const {
    const auto send = [&](int32_t x, int32_t y, int32_t to_x, int32_t to_y, int32_t step) {
      moves.Add({share, a_.positions.rank[At(x, y)], a_.positions.rank[At(to_x, to_y)], step});
    };
    const auto distance = [](int32_t a, int32_t b) { return std::abs(a - b); };
    for (int32_t x = 0; x < along_; ++x)
      if (x != x0_) send(x < x0_ ? x + 1 : x - 1, y0_, x, y0_, distance(x, x0_) - 1);
    const int32_t beside = x0_ + 1 < along_ ? x0_ + 1 : x0_ - 1;
    for (int32_t y = 0; y < across_; ++y) {
      if (y == y0_) continue;
      for (int32_t x = 0; x < along_; ++x)
        if (x != x0_) send(x, y < y0_ ? y + 1 : y - 1, x, y, distance(x, x0_) + distance(y, y0_) - 1);
      send(beside, y, x0_, y, distance(y, y0_) + 1);
    }
  }

 private:
  int32_t At(int32_t x, int32_t y) const { return x * along_stride_ + y * across_stride_; }

  const Arrangement& a_;
  int32_t along_, across_, along_stride_, across_stride_, x0_, y0_;
};

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
        MeshTree(arrangement, first, arrangement.positions.Of(root))
            .Broadcast(Piece(all, static_cast<int32_t>(first), 2), moves);
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
