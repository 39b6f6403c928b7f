// Trees over positions. A rank with the data serves a range of positions; the root begins with all positions.
// `binomial`: in every step each rank with the data halves its range and sends the data to the first position
// of the other half: ceil(log2 n) steps. `k-nomial`: each rank with the data cuts its range into up to k
// parts and sends to the first position of each other part at once. Over one port a broadcast takes
// ceil(log_k n) (alpha + (k-1) S beta), a gather or scatter ceil(log_k n) alpha + (n-1)/n S beta. The radix k
// is the fastest for the size on the machine's links (Wilkins et al., CLUSTER 2023). Far parts are served
// first, so that few sends cross between domains. A gather goes up the same tree, with messages that grow.
#include "synth/textbook/engines.h"
#include "synth/textbook/radix.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

Recipe TreeRecipe(const Positions& positions, int32_t radix, bool xor_turn) {
  const auto tree = [positions, radix, xor_turn](Rank root) {
    return TreeRounds(StartingAt(positions, root, xor_turn), radix);
  };
  Recipe recipe;
  recipe.root = positions.rank[0];
  recipe.broadcast = [tree](Rank root, ChunkRange all, Moves& moves) {
    RoundsBroadcast(tree(root), root, all, moves);
  };
  recipe.gather = [tree](Rank root, const Blocks& blocks, Moves& moves) {
    RoundsGather(tree(root), root, blocks, moves);
  };
  return recipe;
}

}  // namespace

StatusOr<Recipe> PlaceBinomial(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = CubePositions(graph, request.collective->ranks());
  return TreeRecipe(positions, 2, IsPowerOf2(positions.size()));
}

StatusOr<Recipe> PlaceKnomial(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  const int32_t n = positions.size();
  const Rank root = request.collective->spec().root.value_or(positions.rank[0]);
  const bool gathers = BaseOf(request.collective->kind()) == Base::kGather;
  const int32_t radix = BestRadix(n, n, [&](int32_t k) {
    Moves moves;
    const Recipe recipe = TreeRecipe(positions, k, false);
    gathers ? recipe.gather(root, EqualBlocks({0, n}, n), moves) : recipe.broadcast(root, {0, 1}, moves);
    return MovesTimePs(moves, graph, request, gathers ? 1.0 / n : 1);
  });
  return TreeRecipe(positions, radix, false);
}

}  // namespace xccl
