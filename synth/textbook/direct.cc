// Every block straight from its owner to whoever needs it. `direct` does so in one step; an allreduce is
// two-shot (reduce_scatter, allgather), or one-shot, everyone to everyone, where ranks may round differently
// and that is faster. `pairwise` takes n-1 steps, in each of which every rank sends to one partner and
// receives from one: XOR for powers of 2, else a rotation.
#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

// The partner that p sends to in round k = 1..n-1.
int32_t Partner(int32_t p, int32_t k, int32_t n) { return n == PowerBelow(n) ? p ^ k : (p + k) % n; }

// Every pair once, in rounds; f(sender, receiver, round).
template <typename F>
void ForRounds(int32_t n, F f) {
  for (int32_t k = 1; k < n; ++k)
    for (int32_t p = 0; p < n; ++p) f(p, Partner(p, k, n), k - 1);
}

// All pairs at once, each with `fraction` of the size: the latency of the farthest and the load of the
// busiest link where all are next to each other, of the average link elsewhere.
struct Exchange {
  Cost cost;
  double hops = 1;  // of an average pair
};
Exchange MeasureExchange(const RankGraph& graph, const Positions& positions, double fraction) {
  Cost cost;
  const int64_t n = positions.size();
  std::vector<bool> member(static_cast<size_t>(graph.num_ranks()), false);
  for (Rank r : positions.rank) member[r.index()] = true;
  std::vector<double> load(static_cast<size_t>(graph.topology().num_links()), 0);
  int64_t pairs = 0;
  for (Rank r : positions.rank) {
    std::optional<Rank> last;
    for (HopId h = graph.FirstOut(r); h < graph.EndOut(r); ++h.value) {
      const Hop& hop = graph.hop(h);
      if (!member[hop.to.index()] || last == hop.to) continue;
      last = hop.to;
      ++pairs;
      cost.fixed_ps = std::max(cost.fixed_ps, static_cast<double>(hop.latency_ps));
      for (LinkId l : graph.Links(h)) {
        load[l.index()] +=
            fraction * 1e12 / static_cast<double>(graph.topology().link(l).bandwidth_bytes_per_s);
        cost.ps_per_byte = std::max(cost.ps_per_byte, load[l.index()]);
      }
    }
  }
  if (pairs == n * (n - 1)) return {cost, 1};
  Router router(graph);
  int64_t hops = 0, farthest = 0;
  for (Rank a : positions.rank) {
    for (Rank b : positions.rank) {
      const int64_t distance = router.Distance(a, b).value_or(0);
      hops += distance;
      farthest = std::max(farthest, distance);
    }
  }
  double capacity = 0;
  for (int32_t h = 0; h < graph.num_hops(); ++h)
    capacity += static_cast<double>(graph.hop(HopId(h)).bandwidth_bytes_per_s);
  cost.fixed_ps *= static_cast<double>(farthest);
  cost.ps_per_byte = std::max(cost.ps_per_byte, static_cast<double>(hops) * fraction * 1e12 / capacity);
  return {cost, static_cast<double>(hops) / static_cast<double>(n * (n - 1))};
}

void DirectSendrecv(const Collective& cut, Moves& moves) {
  for (int32_t p = 0; p < cut.num_parts(); ++p) {
    const auto& [from, to] = cut.spec().pairs[static_cast<size_t>(p)];
    moves.Add({{cut.FirstChunk(PartId(p)).value, cut.ChunksOf(PartId(p))},
               from,
               to,
               0,
               TransferOp::kCopy,
               std::nullopt});
  }
}

bool AllNextToEachOther(const RankGraph& graph, std::span<const Rank> members) {
  for (Rank a : members)
    for (Rank b : members)
      if (a != b && !graph.Find(a, b)) return false;
  return true;
}

Recipe ExchangeRecipe(const RankGraph& graph, const SynthesisRequest& request, bool rounds) {
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  const int32_t n = positions.size();
  const auto step_of = [rounds](int32_t round) { return rounds ? round : 0; };
  Recipe recipe;
  recipe.root = positions.rank[0];
  recipe.allgather = [positions, n, step_of](const Blocks& blocks, Moves& moves) {
    moves.Reserve(static_cast<size_t>(n) * static_cast<size_t>(n));
    ForRounds(n, [&](int32_t p, int32_t q, int32_t round) {
      moves.Add({blocks[positions.member[p]], positions.rank[p], positions.rank[q], step_of(round),
                 TransferOp::kCopy, std::nullopt});
    });
  };
  recipe.alltoall = [positions, n, step_of](const Pairs& pairs, Moves& moves) {
    moves.Reserve(static_cast<size_t>(n) * static_cast<size_t>(n));
    ForRounds(n, [&](int32_t p, int32_t q, int32_t round) {
      moves.Add({pairs.Of(positions.member[p], positions.member[q]), positions.rank[p], positions.rank[q],
                 step_of(round), TransferOp::kCopy, std::nullopt});
    });
  };
  auto [cost, hops] = MeasureExchange(graph, positions, 1.0 / n);
  recipe.alltoall_hops = hops;
  if (rounds) cost.fixed_ps *= n - 1;
  recipe.allgather_cost = recipe.alltoall_cost = cost;
  return recipe;
}

StatusOr<Recipe> PlaceDirect(const RankGraph& graph, const SynthesisRequest& request) {
  const CollectiveKind kind = request.collective->kind();
  const std::span<const Rank> members = request.collective->ranks();
  const bool rooted = IsRooted(kind) || kind == CollectiveKind::kSendrecv;
  Recipe recipe;
  if (!rooted) recipe = ExchangeRecipe(graph, request, false);
  const std::vector<Rank> ranks(members.begin(), members.end());
  recipe.broadcast = [ranks](Rank root, ChunkRange all, Moves& moves) {
    for (Rank r : ranks) moves.Add({all, root, r, 0, TransferOp::kCopy, std::nullopt});
  };
  recipe.gather = [ranks](Rank root, const Blocks& blocks, Moves& moves) {
    for (size_t i = 0; i < ranks.size(); ++i)
      moves.Add({blocks[i], ranks[i], root, 0, TransferOp::kCopy, std::nullopt});
  };
  recipe.sendrecv = DirectSendrecv;
  if (rooted) return recipe;
  recipe.alltoall_cost = recipe.allgather_cost;
  if (kind == CollectiveKind::kAllreduce && request.allow_divergent && AllNextToEachOther(graph, members)) {
    const Positions positions = DomainPositions(graph, members);
    const Cost one_shot = MeasureExchange(graph, positions, 1.0).cost;
    const double bytes = static_cast<double>(request.size_bytes);
    const double once = one_shot.fixed_ps + one_shot.ps_per_byte * bytes;
    const double twice = 2 * (recipe.allgather_cost->fixed_ps + recipe.allgather_cost->ps_per_byte * bytes);
    if (once < twice) {
      recipe.allreduce_cost = one_shot;
      recipe.allreduce = [positions](ChunkRange all, Moves& moves) {
        ForRounds(positions.size(), [&](int32_t p, int32_t q, int32_t) {
          moves.Add({all, positions.rank[p], positions.rank[q], 0, TransferOp::kReduce, std::nullopt});
        });
      };
    }
  }
  return recipe;
}

StatusOr<Recipe> PlacePairwise(const RankGraph& graph, const SynthesisRequest& request) {
  return ExchangeRecipe(graph, request, true);
}

}  // namespace

const TextbookEngine& DirectEngine() {
  static const TextbookEngine engine = {
      "direct",
      "every block straight to where it is needed, all at once; optimal on full meshes; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
       CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kBroadcast,
       CollectiveKind::kReduce, CollectiveKind::kGather, CollectiveKind::kScatter, CollectiveKind::kAlltoall,
       CollectiveKind::kAlltoallv, CollectiveKind::kSendrecv, CollectiveKind::kBarrier},
      PlaceDirect};
  return engine;
}

const TextbookEngine& PairwiseEngine() {
  static const TextbookEngine engine = {
      "pairwise",
      "n-1 rounds, one partner each, so that no receiver is crowded; not exact",
      {CollectiveKind::kAllgather, CollectiveKind::kAllgatherv, CollectiveKind::kReduceScatter,
       CollectiveKind::kReduceScatterv, CollectiveKind::kAlltoall, CollectiveKind::kAlltoallv},
      PlacePairwise};
  return engine;
}

}  // namespace xccl
