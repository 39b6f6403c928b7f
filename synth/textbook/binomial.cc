// Binomial tree: in every step each rank that has the data halves what it is responsible for and sends to the
// first of the other half: ceil(log2 n) steps. Far halves come first, so domains are entered once each and
// then serve themselves. gather is the same tree upwards with growing messages.
#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

// f(parent position, child position, positions [child, end) below it, step), top down.
template <typename F>
void ForEdges(int32_t n, F f) {
  const int32_t logs = CeilLog2(n);
  for (int32_t s = 0; s < logs; ++s) {
    const int32_t half = 1 << (logs - 1 - s);
    for (int32_t p = 0; p + half < n; p += 2 * half) f(p, p + half, std::min(p + 2 * half, n), s);
  }
}

StatusOr<Recipe> PlaceBinomial(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = CubePositions(graph, request.collective->ranks());
  const bool cube = positions.size() == PowerBelow(positions.size());
  const int32_t steps = CeilLog2(positions.size());
  Recipe recipe;
  recipe.root = positions.rank[0];
  recipe.broadcast = [positions, cube](Rank root, ChunkRange all, Moves& moves) {
    const Positions from = StartingAt(positions, root, cube);
    ForEdges(from.size(), [&](int32_t parent, int32_t child, int32_t, int32_t step) {
      moves.Add({all, from.rank[parent], from.rank[child], step, TransferOp::kCopy, std::nullopt});
    });
  };
  recipe.gather = [positions, cube, steps](Rank root, const Blocks& blocks, Moves& moves) {
    const Positions from = StartingAt(positions, root, cube);
    ForEdges(from.size(), [&](int32_t parent, int32_t child, int32_t end, int32_t step) {
      std::vector<int32_t> sent(from.member.begin() + child, from.member.begin() + end);
      SendBlocks(blocks, sent, from.rank[child], from.rank[parent], steps - 1 - step, moves);
    });
  };
  return recipe;
}

}  // namespace

const TextbookEngine& BinomialEngine() {
  static const TextbookEngine engine = {
      "binomial",
      "binomial tree, far halves first: ceil(log2 n) steps, for small sizes; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kBroadcast, CollectiveKind::kReduce,
       CollectiveKind::kGather, CollectiveKind::kScatter, CollectiveKind::kBarrier},
      PlaceBinomial};
  return engine;
}

}  // namespace xccl
