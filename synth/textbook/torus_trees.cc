// Trees of a broadcast on a torus, two for each dimension. No two trees share a link in one direction. They
// use all links of the root at once, so no broadcast has a higher rate. A rank v is given by its distance
// from the root along each dimension. S is the set of dimensions in which this distance is not 0. A tree is
// named by a dimension i and a direction. The tree enters v
// - along dimension i, against its direction, if i is not in S;
// - otherwise in its direction, along the next dimension of S after i in cyclic order; that is i itself if S
//   has no other.
// Every way to the root is finite: it shortens one distance after another to 0, that of dimension i last. The
// trees enter v over different links. Trees of an i outside S use the two links of i. Trees of an i in S use
// the links of the next dimension of S, which is another one for each i. On a hypercube these are the trees
// of Johnsson and Ho (IEEE Transactions on Computers, 1989).
#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "ir/simulate/simulate.h"
#include "synth/textbook/arrange.h"
#include "synth/textbook/engines.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "torus-trees";

class TorusTree {
 public:
  TorusTree(const Arrangement& arrangement, int32_t root, size_t dim, int32_t direction)
      : grid_(arrangement.grid), positions_(arrangement.positions), dim_(dim), direction_(direction) {
    for (size_t i = 0; i < grid_.dims.size(); ++i) {
      stride_.push_back(grid_.Stride(i));
      root_.push_back(root / stride_[i] % grid_.dims[i]);
    }
    distance_.resize(grid_.dims.size());
  }

  void AddTo(ChunkRange share, Moves& moves) {
    for (int32_t v = 0; v < grid_.num_ranks(); ++v) {
      for (size_t i = 0; i < distance_.size(); ++i)
        distance_[i] = (v / stride_[i] % grid_.dims[i] - root_[i] + grid_.dims[i]) % grid_.dims[i];
      if (std::ranges::all_of(distance_, [](int32_t x) { return x == 0; })) continue;
      const bool is_beside = distance_[dim_] == 0;
      const size_t along = is_beside ? dim_ : Next();
      const int32_t parent = Beside(v, along, is_beside ? direction_ : -direction_);
      moves.Add({share, positions_.rank[parent], positions_.rank[v], Depth() - 1});
    }
  }

 private:
  // Returns the next dimension in cyclic order after the tree's own in which the rank is not at the root's
  // place.
  size_t Next() const {
    size_t next = dim_;
    do next = (next + 1) % distance_.size();
    while (distance_[next] == 0);
    return next;
  }
  int32_t Beside(int32_t v, size_t along, int32_t by) const {
    const int32_t size = grid_.dims[along], x = v / stride_[along] % size;
    return v + ((x + by + size) % size - x) * stride_[along];
  }
  int32_t Depth() const {
    int32_t depth = distance_[dim_] == 0 ? 2 : 0;  // one step to the side, and one from the root
    for (size_t i = 0; i < distance_.size(); ++i)
      if (distance_[i] != 0) depth += direction_ > 0 ? distance_[i] : grid_.dims[i] - distance_[i];
    return depth;
  }

  const Grid& grid_;
  const Positions& positions_;
  const size_t dim_;
  const int32_t direction_;
  std::vector<int32_t> stride_, root_;
  std::vector<int32_t> distance_;  // of the rank at hand from the root, by dimension
};

}  // namespace

StatusOr<Recipe> PlaceTorusTrees(const RankGraph& graph, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Arrangement torus, Arrange(graph, request.collective->ranks(), kName));
  const std::vector<int32_t>& dims = torus.grid.dims;
  if (!torus.is_machine || dims.empty() || std::ranges::count(torus.grid.wraps, false) > 0)
    return InvalidInput(
        fmt::format("{}: the links form no torus whose sides are all at least 3; expected one, with all its "
                    "ranks as members; hint: --engine=forest",
                    kName));
  Recipe recipe;
  recipe.pieces = 2 * static_cast<int32_t>(dims.size());
  recipe.pipelines = true;
  double slowest_ps = 0, latency_ps = 0;  // of a byte, of a message
  for (int32_t h = 0; h < graph.num_hops(); ++h) {
    const Hop& hop = graph.hop(HopId(h));
    slowest_ps = std::max(slowest_ps, 1e12 / static_cast<double>(hop.bandwidth_bytes_per_s));
    latency_ps = std::max(latency_ps, static_cast<double>(hop.latency_ps));
  }
  const double piece = static_cast<double>(request.size_bytes) / recipe.pieces;
  const double segment = std::min(piece, static_cast<double>(kFineSegmentBytes));
  const int32_t depth = std::accumulate(dims.begin(), dims.end(), 2 - static_cast<int32_t>(dims.size()));
  recipe.cost = Cost{depth * (latency_ps + segment * slowest_ps), slowest_ps / recipe.pieces};
  recipe.broadcast = [torus](Rank root, ChunkRange all, Moves& moves) {
    const auto trees = static_cast<int32_t>(2 * torus.grid.dims.size());
    moves.Reserve(static_cast<size_t>(trees) * static_cast<size_t>(torus.positions.size()));
    for (int32_t t = 0; t < trees; ++t)
      TorusTree(torus, torus.positions.Of(root), static_cast<size_t>(t / 2), t % 2 == 0 ? 1 : -1)
          .AddTo(Piece(all, t, trees), moves);
  };
  return recipe;
}

}  // namespace xccl
