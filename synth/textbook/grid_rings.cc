// Rings along the dimensions of a grid. allgather: along one dimension after the other, in each in both
// directions round its rings (or along its lines), so that a dimension of d takes floor(d/2) steps on a ring.
// `2d-ring` has one dimension at work at a time. `2d-torus` cuts every block into a piece per dimension, and
// each piece starts with another one, so that all links are busy: on tori latency- and bandwidth-optimal at
// once. The farthest rank of an even ring is reached in both directions, so there one half of the data takes
// one of them and the other half the other. Ranks that are all next to each other are arranged as a grid of
// nearly equal sides.
#include <algorithm>

#include "synth/textbook/arrange.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

// Everyone sends on to both neighbours of its line, first to the one in this direction (1 or -1).
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

// By member: vertices of a line, and of the grid, have all turns about equally often.
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
  bool both = false;  // directions round an even ring
  for (size_t i = 0; i < grid.dims.size(); ++i) both |= grid.wraps[i] && grid.dims[i] % 2 == 0;
  // One dimension at a time gains nothing from the second direction where both share a port.
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
