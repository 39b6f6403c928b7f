// Trees of radix k: whoever has the data sends it to k-1 at once in every step. A broadcast takes ceil(log_k
// n) (alpha + (k-1) S beta) over one port, gather and scatter ceil(log_k n) alpha + (n-1)/n S beta. Far parts
// come first, so that domains are entered once. The radix is the fastest at the size on the links at hand, at
// least 2, below n. (Collectives of radix k on exascale machines: Wilkins et al., CLUSTER 2023.)
#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/radix.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

// Position 0's tree: the parts of whoever has the data are cut into k, far parts first.
Rounds TreeRounds(const Positions& positions, int32_t k) {
  const int32_t n = positions.size();
  int64_t power = 1;
  while (power < n) power *= k;
  Rounds rounds{positions, {}};
  for (power /= k; power >= 1; power /= k) {
    const int32_t distance = static_cast<int32_t>(power);
    rounds.rounds.emplace_back();
    for (int64_t p = 0; p < n; p += power * k)
      for (int64_t child = p + power; child < std::min<int64_t>(n, p + power * k); child += power)
        rounds.rounds.back().push_back({static_cast<int32_t>(p), static_cast<int32_t>(child), false});
    if (distance == 1) break;
  }
  return rounds;
}

bool IsGathering(CollectiveKind kind) {
  return kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
}

StatusOr<Recipe> PlaceKnomial(const RankGraph& graph, const SynthesisRequest& request) {
  const CollectiveKind kind = request.collective->kind();
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  const int32_t n = positions.size();
  const Rank placed = request.collective->spec().root.value_or(positions.rank[0]);
  const Positions from = StartingAt(positions, placed, false);
  const int32_t radix = BestRadix(n, n, [&](int32_t k) {
    Moves moves;
    const Rounds rounds = TreeRounds(from, k);
    if (IsGathering(kind)) {
      Blocks blocks;
      for (int32_t i = 0; i < n; ++i) blocks.push_back({i, 1});
      RoundsGather(rounds, placed, blocks, moves);
    } else {
      RoundsBroadcast(rounds, placed, {0, 1}, moves);
    }
    return MovesTimePs(moves, graph, request, IsGathering(kind) ? 1.0 / n : 1);
  });
  Recipe recipe;
  recipe.root = placed;
  recipe.broadcast = [positions, radix](Rank root, ChunkRange all, Moves& moves) {
    RoundsBroadcast(TreeRounds(StartingAt(positions, root, false), radix), root, all, moves);
  };
  recipe.gather = [positions, radix](Rank root, const Blocks& blocks, Moves& moves) {
    RoundsGather(TreeRounds(StartingAt(positions, root, false), radix), root, blocks, moves);
  };
  return recipe;
}

}  // namespace

const TextbookEngine& KnomialEngine() {
  static const TextbookEngine engine = {
      "k-nomial",
      "trees of radix k, chosen by size: ceil(log_k n) steps of k-1 sends; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kBroadcast, CollectiveKind::kReduce,
       CollectiveKind::kGather, CollectiveKind::kScatter, CollectiveKind::kBarrier},
      PlaceKnomial};
  return engine;
}

}  // namespace xccl
