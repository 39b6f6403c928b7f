// The nonuniform hierarchical ring of Huawei's collective library (HCCL, `NHR`): ceil(log2 n) steps on a
// circle for every n, far neighbours first while there is little to send. allgather: at distance d = 2^k,
// from the largest below n down to 1, a rank passes on what started 0, 2d, 4d .. before it, as far as that is
// new to the next: ceil(log2 n) alpha + (n-1)/n S beta. Blocks sent at once are not neighbours in memory.
// reduce_scatter is that backwards; a broadcast deals blocks out down a tree of the same distances and
// gathers them.
#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

// f(step, distance), far first.
template <typename F>
void ForDistances(int32_t n, F f) {
  const int32_t steps = CeilLog2(n);
  for (int32_t s = 0; s < steps; ++s) f(s, 1 << (steps - 1 - s));
}

// Blocks sent over a distance.
int32_t BlocksAt(int32_t n, int32_t distance) { return (n - 1 + distance) / (2 * distance); }

void Allgather(const Positions& positions, const Blocks& blocks, int32_t step, Moves& moves) {
  const int32_t n = positions.size();
  std::vector<int32_t> sent;
  ForDistances(n, [&](int32_t s, int32_t distance) {
    for (int32_t p = 0; p < n; ++p) {
      sent.clear();
      for (int32_t i = 0; i < BlocksAt(n, distance); ++i)
        sent.push_back(positions.member[((p - 2 * i * distance) % n + n) % n]);
      SendBlocks(blocks, sent, positions.rank[p], positions.rank[(p + distance) % n], step + s, moves);
    }
  });
}

// Position 0's tree.
Rounds TreeRounds(const Positions& positions) {
  Rounds rounds{positions, {}};
  const int32_t n = positions.size();
  ForDistances(n, [&](int32_t, int32_t distance) {
    rounds.rounds.emplace_back();
    for (int32_t p = 0; p + distance < n; p += 2 * distance)
      rounds.rounds.back().push_back({p, p + distance, false});
  });
  return rounds;
}

void Broadcast(const Positions& positions, ChunkRange all, Moves& moves) {
  const int32_t n = positions.size();
  Blocks blocks(static_cast<size_t>(n));
  for (int32_t p = 0; p < n; ++p) blocks[positions.member[p]] = Piece(all, p, n);
  RoundsScatter(TreeRounds(positions), positions.rank[0], blocks, moves);
  Allgather(positions, blocks, CeilLog2(n), moves);
}

std::optional<Cost> AllgatherCost(const Positions& positions, const RankGraph& graph) {
  const int32_t n = positions.size();
  if (n > kMostMeasured) return std::nullopt;
  Moves moves;
  ForDistances(n, [&](int32_t step, int32_t distance) {
    for (int32_t p = 0; p < n; ++p)
      moves.Add({{0, BlocksAt(n, distance)},
                 positions.rank[p],
                 positions.rank[(p + distance) % n],
                 step,
                 TransferOp::kCopy,
                 std::nullopt});
  });
  return MeasureMoves(moves, graph, 1.0 / n, false);
}

StatusOr<Recipe> PlaceNhr(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  Recipe recipe;
  recipe.root = positions.rank[0];
  recipe.broadcast_pieces = positions.size();
  recipe.repeats = request.collective->kind() == CollectiveKind::kBroadcast ||
                   request.collective->kind() == CollectiveKind::kReduce;
  recipe.allgather_cost = AllgatherCost(positions, graph);
  recipe.allgather = [positions](const Blocks& blocks, Moves& moves) {
    Allgather(positions, blocks, 0, moves);
  };
  recipe.broadcast = [positions](Rank root, ChunkRange all, Moves& moves) {
    Broadcast(StartingAt(positions, root, false), all, moves);
  };
  recipe.gather = [positions](Rank root, const Blocks& blocks, Moves& moves) {
    RoundsGather(TreeRounds(StartingAt(positions, root, false)), root, blocks, moves);
  };
  return recipe;
}

}  // namespace

const TextbookEngine& NhrEngine() {
  static const TextbookEngine engine = {
      "nhr",
      "Huawei's nonuniform hierarchical ring: distances n/2, n/4.. round a circle, ceil(log2 n) steps for "
      "every n; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
       CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kBroadcast,
       CollectiveKind::kReduce, CollectiveKind::kGather, CollectiveKind::kScatter, CollectiveKind::kBarrier},
      PlaceNhr};
  return engine;
}

}  // namespace xccl
