// The circle of an even number of positions; a grid of even sides has one along every dimension.
#include "synth/textbook/swing.h"

#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/grid.h"

namespace xccl {
namespace {

int32_t Rho(int32_t step) {
  int32_t power = 1;
  for (int32_t s = 0; s <= step; ++s) power *= -2;
  return (1 - power) / 3;
}

// One dimension in which positions with even and odd coordinates meet.
struct Axis {
  int32_t size = 1, stride = 1;
  int32_t Steps() const { return CeilLog2(size); }
};

// Rounds over `n` positions, far partners first: axes in turn from `first` on, the partners' side by
// `mirror`.
std::vector<std::vector<RoundSend>> SwingRounds(const std::vector<Axis>& axes, int32_t n, size_t first,
                                                bool mirror) {
  std::vector<std::vector<RoundSend>> rounds;
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
      rounds.back().push_back({p, p + (y - x) * stride, false});
    }
  }
  std::reverse(rounds.begin(), rounds.end());
  return rounds;
}

}  // namespace

std::vector<std::vector<RoundSend>> CircleRounds(int32_t n) {
  const int32_t even = n > 1 ? n - n % 2 : 0;
  std::vector<std::vector<RoundSend>> rounds = SwingRounds({{even, 1}}, even, 0, false);
  const int32_t steps = static_cast<int32_t>(rounds.size());
  // It meets as many in a step as the others exchange blocks, 1, 2, 4 ..
  for (int32_t p = 0; p < even && n > even; ++p) {
    int32_t round = 0;
    while (round + 1 < steps && p + 1 >= 2 << round) ++round;
    rounds[round].push_back({p, even, true});
    rounds[round].push_back({even, p, true});
  }
  return rounds;
}

namespace {

// On a grid of all ranks with even sides its axes; else none.
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

// Positions are ranks.
Positions GridPositions(std::span<const Rank> members) {
  Positions positions;
  positions.rank.resize(members.size());
  positions.member.resize(members.size());
  for (size_t m = 0; m < members.size(); ++m) {
    positions.rank[members[m].index()] = members[m];
    positions.member[members[m].index()] = static_cast<int32_t>(m);
  }
  return positions;
}

StatusOr<Recipe> PlaceSwing(const RankGraph& graph, const SynthesisRequest& request) {
  const std::span<const Rank> members = request.collective->ranks();
  std::vector<Rounds> lanes;
  if (const std::vector<Axis> axes = EvenAxes(graph, members); !axes.empty()) {
    const Positions positions = GridPositions(members);
    const bool sides = std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.size > 2; });
    for (bool mirror : {false, true})
      for (size_t i = 0; i < axes.size() && (sides || !mirror); ++i)
        lanes.push_back({positions, SwingRounds(axes, positions.size(), i, mirror)});
  } else {
    const Positions positions = DomainPositions(graph, members);
    lanes.push_back({positions, CircleRounds(positions.size())});
  }
  Recipe recipe;
  recipe.root = lanes[0].positions.rank[0];
  recipe.lanes = static_cast<int32_t>(lanes.size());
  recipe.allgather_cost = RoundsAllgatherCost(lanes, graph);
  ExchangeWhereFaster(lanes[0], graph, request, recipe);
  recipe.allgather = [lanes = std::move(lanes)](const Blocks& blocks, Moves& moves) {
    RoundsAllgatherInLanes(lanes, blocks, moves);
  };
  return recipe;
}

}  // namespace

const TextbookEngine& SwingEngine() {
  static const TextbookEngine engine = {
      "swing",
      "partners at 1, -1, 3, -5, 11.. on either side, all links of a torus at work; 2 ceil(log2 n) steps; "
      "not "
      "exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
       CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kBarrier},
      PlaceSwing};
  return engine;
}

}  // namespace xccl
