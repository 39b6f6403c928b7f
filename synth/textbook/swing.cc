// `swing` (De Sensi, Bonato, Saam and Hoefler, NSDI 2024). In step s an even position p meets p + rho(s), and
// an odd position p meets p - rho(s). rho(s) = (1 - (-2)^(s+1)) / 3 = 1, -1, 3, -5, 11 .., so that partners
// swing from side to side and are at most 2^s away. A reduce_scatter takes ceil(log2 n) steps, with far
// partners last, when little data is left. The allgather is the reduce_scatter backwards: ceil(log2 n) alpha
// + (n-1)/n S beta if partners share no links.
// On a grid with only even sides, the steps take the dimensions in turn. Two stripes start with each
// dimension, one if all sides are 2. One of the two swings to the other side, so that all links are busy. On
// other machines the ranks form a circle. If an even n is not a power of 2, blocks that the receiver already
// has are left out. If n is odd, the last position exchanges data with every other position directly.
//
// `bine` (De Sensi et al., SC 2025): binomial trees over negabinary digits. Partners are those of swing on a
// circle, at about 2/3 of the distance in a binomial tree, so that fewer bytes cross between domains. The
// sends that reach a position without data form the root's tree of ceil(log2 n) steps. A broadcast takes
// ceil(log2 n) (alpha + S beta), or deals the data out and gathers it if that is faster. gather and scatter:
// ceil(log2 n) alpha + (n-1)/n S beta. An alltoall moves half of a rank's buffer in every step. The paper
// covers powers of 2; other n are treated as in swing.
#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/grid.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

int32_t Rho(int32_t step) {
  int32_t power = 1;
  for (int32_t s = 0; s <= step; ++s) power *= -2;
  return (1 - power) / 3;
}

// One dimension of the positions. Even coordinates along the dimension meet odd ones.
struct Axis {
  int32_t size = 1, stride = 1;
  int32_t Steps() const { return CeilLog2(size); }
};

// Returns rounds over `n` positions, far partners first. In the opposite order, the rounds take the axes in
// turn, beginning with axis `first`. `mirror` swaps the sides on which the partners stand.
std::vector<Round> SwingRounds(const std::vector<Axis>& axes, int32_t n, size_t first, bool mirror) {
  std::vector<Round> rounds;
  std::vector<int32_t> step(axes.size(), 0);
  for (size_t turn = first, idle = 0; idle < axes.size(); ++turn) {
    const size_t i = turn % axes.size();
    if (step[i] == axes[i].Steps()) {
      ++idle;
      continue;
    }
    idle = 0;
    const int32_t rho = Rho(step[i]++) * (mirror ? -1 : 1), size = axes[i].size, stride = axes[i].stride;
    rounds.emplace_back();
    for (int32_t p = 0; p < n; ++p) {
      const int32_t x = p / stride % size;
      const int32_t y = ((x + (x % 2 == 0 ? rho : -rho)) % size + size) % size;
      rounds.back().push_back({p, p + (y - x) * stride});
    }
  }
  std::ranges::reverse(rounds);
  return rounds;
}

// Returns rounds for n positions on a circle, far partners first. If n is odd, the last position swaps its
// own data for the own data of each other position directly.
std::vector<Round> CircleRounds(int32_t n) {
  if (n == 1) return {};
  const int32_t even = n - n % 2;
  std::vector<Round> rounds = SwingRounds({{even, 1}}, even, 0, false);
  const int32_t steps = static_cast<int32_t>(rounds.size());
  // The last position meets 1, 2, 4 .. others in successive rounds, as many as partners exchange blocks.
  for (int32_t p = 0; p < even && n > even; ++p) {
    const int32_t round = std::min(CeilLog2(p + 2) - 1, steps - 1);
    rounds[round].push_back({p, even, true});
    rounds[round].push_back({even, p, true});
  }
  return rounds;
}

// Returns the axes of the machine's grid if all ranks are members and all sides are even; otherwise no axes.
std::vector<Axis> EvenAxes(const RankGraph& graph, std::span<const Rank> members) {
  std::vector<Axis> axes;
  if (static_cast<int32_t>(members.size()) != graph.num_ranks()) return axes;
  const std::optional<Grid> grid = DetectGrid(graph);
  if (!grid) return axes;
  for (size_t i = 0; i < grid->dims.size(); ++i) {
    if (grid->dims[i] % 2 != 0) return {};
    axes.push_back({grid->dims[i], grid->Stride(i)});
  }
  return axes;
}

// Replaces the recipe's broadcast down the tree by a scatter followed by an allgather, if that is faster.
void ScatterAllgatherIfFaster(const Rounds& rounds, const RankGraph& graph, const SynthesisRequest& request,
                              Recipe& recipe) {
  const int32_t n = rounds.size();
  Moves whole, dealt;
  recipe.broadcast(recipe.root, {0, 1}, whole);
  DealAndGather(rounds, rounds.positions.member, {0, n}, dealt);
  if (MovesTimePs(whole, graph, request, 1) <= MovesTimePs(dealt, graph, request, 1.0 / n)) return;
  recipe.pieces = n;
  recipe.repeats = true;
  recipe.broadcast = [rounds](Rank, ChunkRange all, Moves& moves) {
    DealAndGather(rounds, rounds.positions.member, all, moves);
  };
}

}  // namespace

StatusOr<Recipe> PlaceSwing(const RankGraph& graph, const SynthesisRequest& request) {
  const std::span<const Rank> members = request.collective->ranks();
  std::vector<Rounds> stripes;
  if (const std::vector<Axis> axes = EvenAxes(graph, members); !axes.empty()) {
    const Positions positions = RankPositions(members);
    const bool sides = std::ranges::any_of(axes, [](const Axis& axis) { return axis.size > 2; });
    for (bool mirror : {false, true})
      for (size_t i = 0; i < axes.size() && (sides || !mirror); ++i)
        stripes.push_back({positions, SwingRounds(axes, positions.size(), i, mirror)});
  } else {
    const Positions positions = DomainPositions(graph, members);
    stripes.push_back({positions, CircleRounds(positions.size())});
  }
  Recipe recipe = RoundsRecipe(stripes, graph, request);
  ExchangeIfFaster(stripes[0], graph, request, recipe);
  return recipe;
}

StatusOr<Recipe> PlaceBine(const RankGraph& graph, const SynthesisRequest& request) {
  Rounds rounds{DomainPositions(graph, request.collective->ranks()), {}};
  if (const std::optional<Rank> root = request.collective->spec().root)
    rounds.positions = StartingAt(rounds.positions, *root);
  rounds.rounds = CircleRounds(rounds.size());
  Recipe recipe = RoundsRecipe({rounds}, graph, request);
  if (BaseOf(request.collective->kind()) == Base::kBroadcast)
    ScatterAllgatherIfFaster(rounds, graph, request, recipe);
  ExchangeIfFaster(rounds, graph, request, recipe);
  return recipe;
}

}  // namespace xccl
