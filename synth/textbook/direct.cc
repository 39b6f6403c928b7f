// Every block straight from its owner to whoever needs it. `direct` does so in one step; an allreduce is
// two-shot (reduce_scatter, allgather), or one-shot, everyone to everyone, where ranks may round differently
// and that is faster. `pairwise` takes n-1 steps, in each of which every rank sends to one partner and
// receives from one: XOR for powers of 2, else a rotation.
#include "synth/textbook/engines.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

// Every pair once, in rounds; f(sender, receiver, round).
template <typename F>
void ForRounds(int32_t n, F f) {
  for (int32_t k = 1; k < n; ++k)
    for (int32_t p = 0; p < n; ++p) f(p, IsPowerOf2(n) ? p ^ k : (p + k) % n, k - 1);
}

// Of all pairs of positions, on average.
double AverageHops(const RankGraph& graph, const Positions& positions) {
  Router router(graph);
  double hops = 0;
  for (Rank a : positions.rank)
    for (Rank b : positions.rank) hops += router.Distance(a, b).value_or(0);
  return std::max(1.0, hops / positions.size() / std::max(1, positions.size() - 1));
}

void DirectSendrecv(const Collective& cut, Moves& moves) {
  for (int32_t p = 0; p < cut.num_parts(); ++p) {
    const auto& [from, to] = cut.spec().pairs[static_cast<size_t>(p)];
    moves.Add({{cut.FirstChunk(PartId(p)).value, cut.ChunksOf(PartId(p))}, from, to});
  }
}

Recipe ExchangeRecipe(const RankGraph& graph, const SynthesisRequest& request, bool rounds) {
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  const auto exchange = [positions, rounds](Moves& moves, auto block) {
    moves.Reserve(positions.rank.size() * positions.rank.size());
    ForRounds(positions.size(), [&](int32_t p, int32_t q, int32_t round) {
      moves.Add({block(positions.member[p], positions.member[q]), positions.rank[p], positions.rank[q],
                 rounds ? round : 0});
    });
  };
  Recipe recipe;
  recipe.root = positions.rank[0];
  recipe.allgather = [exchange](const Blocks& blocks, Moves& moves) {
    exchange(moves, [&](int32_t from, int32_t) { return blocks[from]; });
  };
  recipe.alltoall = [exchange](const Pairs& pairs, Moves& moves) {
    exchange(moves, [&](int32_t from, int32_t to) { return pairs.Of(from, to); });
  };
  if (BaseOf(request.collective->kind()) == Base::kAlltoall)
    recipe.alltoall_hops = AverageHops(graph, positions);
  return recipe;
}

}  // namespace

StatusOr<Recipe> PlaceDirect(const RankGraph& graph, const SynthesisRequest& request) {
  Recipe recipe = ExchangeRecipe(graph, request, false);
  const std::vector<Rank> ranks(request.collective->ranks().begin(), request.collective->ranks().end());
  recipe.broadcast = [ranks](Rank root, ChunkRange all, Moves& moves) {
    for (Rank r : ranks) moves.Add({all, root, r});
  };
  recipe.gather = [ranks](Rank root, const Blocks& blocks, Moves& moves) {
    for (size_t i = 0; i < ranks.size(); ++i) moves.Add({blocks[i], ranks[i], root});
  };
  recipe.sendrecv = DirectSendrecv;
  if (request.collective->kind() != CollectiveKind::kAllreduce || !request.allow_divergent) return recipe;
  const int32_t n = static_cast<int32_t>(ranks.size());
  Rounds one_shot{DomainPositions(graph, ranks), {{}}};
  ForRounds(n, [&](int32_t p, int32_t q, int32_t) { one_shot.rounds[0].push_back({p, q}); });
  recipe.cost = MeasureMoves(AllgatherLoads({&one_shot, 1}), graph, 1.0 / n);
  ExchangeWhereFaster(one_shot, graph, request, recipe);
  return recipe;
}

StatusOr<Recipe> PlacePairwise(const RankGraph& graph, const SynthesisRequest& request) {
  return ExchangeRecipe(graph, request, true);
}

}  // namespace xccl
