// Rings along the dimensions of a grid. An allgather goes along one dimension after another, in both
// directions round the rings (or along the lines) of a dimension. So a ring of d ranks takes floor(d/2)
// steps. `2d-ring` uses one dimension at a time. `2d-torus` cuts every block into a piece for each dimension,
// and each piece starts with another dimension. So all links are busy, and on tori of equal sides both
// latency and bandwidth are optimal. The farthest rank of an even ring is reached in both directions, so each
// direction brings it half of the data. Ranks that are all neighbours form rows and columns.
#include <algorithm>

#include "synth/textbook/arrange.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

// Returns a round: every rank sends to both neighbours on its line, in `direction` (1 or -1) first.
Round RingRound(const Grid& grid, size_t dim, int32_t direction) {
  const int32_t size = grid.dims[dim], stride = grid.Stride(dim);
  Round round;
  for (int32_t step : {direction, -direction}) {
    for (int32_t v = 0; v < grid.num_ranks(); ++v) {
      const int32_t x = v / stride % size, y = x + step;
      if (grid.wraps[dim] || (y >= 0 && y < size)) round.push_back({v, v + ((y + size) % size - x) * stride});
    }
  }
  return round;
}

Rounds RingRounds(const Arrangement& arrangement, size_t first, int32_t direction) {
  const Grid& grid = arrangement.grid;
  Rounds rounds{arrangement.positions, {}};
  for (size_t i = 0; i < grid.dims.size(); ++i) {
    const size_t dim = (first + i) % grid.dims.size();
    const int32_t steps = grid.wraps[dim] ? grid.dims[dim] / 2 : grid.dims[dim] - 1;
    rounds.rounds.insert(rounds.rounds.end(), static_cast<size_t>(steps), RingRound(grid, dim, direction));
  }
  return rounds;
}

// Returns RoundsRecipe's `turn`. Modulo `stripes`, turns are about equally frequent on each line and in the
// grid.
std::vector<int32_t> Turns(const Arrangement& arrangement, int32_t stripes) {
  const Grid& grid = arrangement.grid;
  std::vector<int32_t> turns(arrangement.positions.member.size(), 0);
  for (int32_t v = 0; v < arrangement.positions.size(); ++v) {
    for (size_t i = 0; i < grid.dims.size(); ++i) {
      const int32_t weight = grid.dims[i] >= stripes ? 1 : static_cast<int32_t>(i) + 1;
      turns[arrangement.positions.member[v]] += weight * (v / grid.Stride(i) % grid.dims[i]);
    }
  }
  return turns;
}

StatusOr<Recipe> PlaceGridRings(const RankGraph& graph, const SynthesisRequest& request,
                                std::string_view engine, bool all_at_once) {
  XCCL_ASSIGN_OR_RETURN(const Arrangement arrangement, Arrange(graph, request.collective->ranks(), engine));
  const Grid& grid = arrangement.grid;
  bool both = false;  // stripes for both directions round an even ring
  for (size_t i = 0; i < grid.dims.size(); ++i) both |= grid.wraps[i] && grid.dims[i] % 2 == 0;
  // 2d-ring gains nothing from the second direction if both directions share a port.
  both &= all_at_once || !HasSharedPorts(graph);
  std::vector<Rounds> stripes;
  for (int32_t direction : {1, -1})
    for (size_t first = 0; first < (all_at_once ? std::max<size_t>(1, grid.dims.size()) : 1); ++first)
      if (direction == 1 || both) stripes.push_back(RingRounds(arrangement, first, direction));
  const std::vector<int32_t> turns = Turns(arrangement, static_cast<int32_t>(stripes.size()));
  Recipe recipe =
      RoundsRecipe(std::move(stripes), graph, request, GridAllgatherCost(grid, graph, all_at_once), turns);
  recipe.pipelines = true;
  return recipe;
}

}  // namespace

StatusOr<Recipe> Place2dRing(const RankGraph& graph, const SynthesisRequest& request) {
  return PlaceGridRings(graph, request, "2d-ring", false);
}
StatusOr<Recipe> Place2dTorus(const RankGraph& graph, const SynthesisRequest& request) {
  return PlaceGridRings(graph, request, "2d-torus", true);
}

}  // namespace xccl
