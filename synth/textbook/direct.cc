// Every block goes straight from its owner to each rank that needs it. `direct` sends all blocks in one step.
// Its allreduce is two-shot (reduce_scatter, then allgather), or one-shot (every rank sends its data to all
// others) if one-shot is faster. `pairwise` takes n-1 steps. In each step every rank sends to one partner and
// receives from one. The step number XOR the position gives the partner if n is a power of 2; otherwise a
// rotation does.
#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

// Calls f(sender, receiver, round) once for every ordered pair of n positions, in n-1 rounds.
template <typename F>
void ForRounds(int32_t n, F f) {
  for (int32_t k = 1; k < n; ++k)
    for (int32_t p = 0; p < n; ++p) f(p, IsPowerOf2(n) ? p ^ k : (p + k) % n, k - 1);
}

// Sets the recipe's alltoall_hops, and its cost if some ranks are not neighbours. The cost assumes the same
// average load on every link, because finding all paths would take longer than making the plan.
void SetExchangeCost(const RankGraph& graph, const Positions& positions, bool rounds, Recipe& recipe) {
  const double n = positions.size();
  double hops = 0, capacity = 0;
  int64_t farthest = 0, latency_ps = 0;
  for (Rank a : positions.rank) {
    for (Rank b : positions.rank) {
      const int64_t distance = graph.Distance(a, b).value_or(0);
      hops += static_cast<double>(distance);
      farthest = std::max(farthest, distance);
    }
  }
  recipe.alltoall_hops = std::max(1.0, hops / n / std::max(1.0, n - 1));
  if (farthest <= 1) return;
  for (int32_t h = 0; h < graph.num_hops(); ++h) {
    capacity += static_cast<double>(graph.hop(HopId(h)).bandwidth_bytes_per_s);
    latency_ps = std::max(latency_ps, graph.hop(HopId(h)).latency_ps);
  }
  recipe.cost =
      Cost{static_cast<double>(latency_ps * farthest) * (rounds ? n - 1 : 1), hops / n * 1e12 / capacity};
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
  recipe.alltoall = [exchange](const PairBlocks& pairs, Moves& moves) {
    exchange(moves, [&](int32_t from, int32_t to) { return pairs.Of(from, to); });
  };
  const Base base = BaseOf(request.collective->kind());
  if (base == Base::kAllgather || base == Base::kAlltoall) SetExchangeCost(graph, positions, rounds, recipe);
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
  if (!IsAllreduce(request.collective->kind()) || recipe.cost) return recipe;
  const int32_t n = static_cast<int32_t>(ranks.size());
  Rounds one_shot{DomainPositions(graph, ranks), {{}}};
  ForRounds(n, [&](int32_t p, int32_t q, int32_t) { one_shot.rounds[0].push_back({p, q}); });
  recipe.cost = MeasureMoves(AllgatherLoads({&one_shot, 1}), graph, 1.0 / n);
  ExchangeIfFaster(one_shot, graph, request, recipe);
  return recipe;
}

StatusOr<Recipe> PlacePairwise(const RankGraph& graph, const SynthesisRequest& request) {
  return ExchangeRecipe(graph, request, true);
}

}  // namespace xccl
