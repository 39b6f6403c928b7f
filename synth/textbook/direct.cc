// Every block goes straight from its owner to each rank that needs it. `direct` sends all blocks in one step.
// Its allreduce is two-shot (reduce_scatter, then allgather), or one-shot (every rank sends its data to all
// others) if one-shot is faster. `pairwise` takes n-1 steps. In each step every rank sends to one partner and
// receives from one. The step number XOR the position gives the partner if n is a power of 2; otherwise a
// rotation does.
#include <algorithm>
#include <utility>

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

// Returns the cost of an exchange in one step in which every member sends `fraction` of the size to each
// other member. Requires that all members are neighbours. Linear in the hops.
Cost OneStepCost(const RankGraph& graph, const Positions& positions, double fraction) {
  std::vector<int64_t> sends(static_cast<size_t>(graph.topology().num_links()), 0);
  std::vector<bool> is_member(static_cast<size_t>(graph.num_ranks()), false);
  for (Rank r : positions.rank) is_member[r.index()] = true;
  int64_t latency_ps = 0;
  for (Rank r : positions.rank) {
    std::optional<Rank> last;
    for (HopId h = graph.FirstOut(r); h < graph.EndOut(r); ++h.value) {
      const Hop& hop = graph.hop(h);
      if (!is_member[hop.to.index()] || std::exchange(last, hop.to) == hop.to)
        continue;  // counts only the best of parallel hops
      latency_ps = std::max(latency_ps, hop.latency_ps);
      for (LinkId l : graph.Links(h)) ++sends[l.index()];
    }
  }
  Cost cost{.fixed_ps = static_cast<double>(latency_ps)};
  for (int32_t l = 0; l < graph.topology().num_links(); ++l)
    cost.ps_per_byte = std::max(
        cost.ps_per_byte, fraction * static_cast<double>(sends[static_cast<size_t>(l)]) * 1e12 /
                              static_cast<double>(graph.topology().link(LinkId(l)).bandwidth_bytes_per_s));
  return cost;
}

// Sets the recipe's alltoall_hops, and its cost if some members are not neighbours. The cost assumes that all
// hops of the machine are equally full, because finding all paths would take longer than making the plan.
void SetExchangeCost(const RankGraph& graph, const Positions& positions, bool rounds, Recipe& recipe) {
  const double n = positions.size();
  if (graph.JoinsAll()) return;
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
  const CollectiveKind kind = request.collective->kind();
  const Base base = BaseOf(kind);
  const bool is_even = base == Base::kAllgather || kind == CollectiveKind::kAlltoall;
  if (recipe.cost || !is_even) return recipe;
  const int32_t n = static_cast<int32_t>(ranks.size());
  const Positions positions = DomainPositions(graph, ranks);
  recipe.cost = OneStepCost(graph, positions, 1.0 / n);
  if (!IsAllreduce(kind)) return recipe;
  // In one shot, a rank sends all of its data to each other rank.
  const Cost once{.fixed_ps = recipe.cost->fixed_ps, .ps_per_byte = n * recipe.cost->ps_per_byte};
  if (once.Ps(request) >= 2 * recipe.cost->Ps(request)) return recipe;
  recipe.exchange = {once, [positions](ChunkRange all, Moves& moves) {
                       Rounds one_shot{positions, {{}}};
                       ForRounds(positions.size(), [&](int32_t p, int32_t q, int32_t) {
                         one_shot.rounds[0].push_back({p, q});
                       });
                       RoundsExchange(one_shot, all, moves);
                     }};
  return recipe;
}

StatusOr<Recipe> PlacePairwise(const RankGraph& graph, const SynthesisRequest& request) {
  return ExchangeRecipe(graph, request, true);
}

}  // namespace xccl
