// Bine trees (De Sensi et al., SC 2025): binomial trees over negabinary digits. The partners are swing's
// (synth/textbook/swing.h), about 2/3 as far as a binomial tree's, so that fewer bytes cross between domains.
// The sends that reach whom has nothing yet are the root's tree, ceil(log2 n) steps of it: broadcast
// ceil(log2 n) (alpha
// + S beta), or dealt out and gathered where that is faster; gather and scatter ceil(log2 n) alpha + (n-1)/n
// S beta; alltoall moves half of a rank's buffer in every step. Powers of 2 are the paper's own; other even
// numbers leave out what would come twice, and the last of an odd number is served directly.
#include "synth/textbook/engines.h"
#include "synth/textbook/swing.h"

namespace xccl {
namespace {

// The tree in one message each, or, where that is faster, blocks dealt out and gathered.
void SetBroadcast(const Rounds& rounds, const RankGraph& graph, const SynthesisRequest& request,
                  Recipe& recipe) {
  const int32_t n = rounds.size();
  const auto dealt = [rounds, n](Rank root, ChunkRange all, Moves& moves) {
    Blocks blocks(static_cast<size_t>(n));
    for (int32_t p = 0; p < n; ++p) blocks[rounds.positions.member[p]] = Piece(all, p, n);
    RoundsScatter(rounds, root, blocks, moves);
    Moves gather;
    RoundsAllgather(rounds, blocks, gather);
    for (Move move : gather.items()) {
      move.step += static_cast<int32_t>(rounds.rounds.size());
      moves.Add(move);
    }
  };
  Moves whole, pieces;
  const Rank root = request.collective->spec().root.value_or(rounds.positions.rank[0]);
  RoundsBroadcast(rounds, root, {0, 1}, whole);
  dealt(root, {0, n}, pieces);
  if (MovesTimePs(whole, graph, request, 1) <= MovesTimePs(pieces, graph, request, 1.0 / n)) {
    recipe.broadcast = [rounds](Rank from, ChunkRange all, Moves& moves) {
      RoundsBroadcast(rounds, from, all, moves);
    };
  } else {
    recipe.broadcast = dealt;
    recipe.broadcast_pieces = n;
    recipe.repeats = true;
  }
}

StatusOr<Recipe> PlaceBine(const RankGraph& graph, const SynthesisRequest& request) {
  const CollectiveKind kind = request.collective->kind();
  Rounds rounds{DomainPositions(graph, request.collective->ranks()), {}};
  if (const std::optional<Rank> root = request.collective->spec().root)
    rounds.positions = StartingAt(rounds.positions, *root, false);
  rounds.rounds = CircleRounds(rounds.size());
  Recipe recipe;
  recipe.root = rounds.positions.rank[0];
  if (kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce) {
    SetBroadcast(rounds, graph, request, recipe);
  } else if (kind == CollectiveKind::kAlltoall || kind == CollectiveKind::kAlltoallv) {
    SetRoundsAlltoallCost(rounds, graph, recipe);
  } else if (kind != CollectiveKind::kGather && kind != CollectiveKind::kScatter) {
    recipe.allgather_cost = RoundsAllgatherCost(std::span(&rounds, 1), graph);
    ExchangeWhereFaster(rounds, graph, request, recipe);
  }
  recipe.allgather = [rounds](const Blocks& blocks, Moves& moves) { RoundsAllgather(rounds, blocks, moves); };
  recipe.gather = [rounds](Rank root, const Blocks& blocks, Moves& moves) {
    RoundsGather(rounds, root, blocks, moves);
  };
  recipe.alltoall = [rounds](const Pairs& pairs, Moves& moves) { RoundsAlltoall(rounds, pairs, moves); };
  return recipe;
}

}  // namespace

const TextbookEngine& BineEngine() {
  static const TextbookEngine engine = {
      "bine",
      "binomial negabinary trees, partners 2/3 as far as in binomial ones; ceil(log2 n) steps; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
       CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kBroadcast,
       CollectiveKind::kReduce, CollectiveKind::kGather, CollectiveKind::kScatter, CollectiveKind::kAlltoall,
       CollectiveKind::kAlltoallv, CollectiveKind::kBarrier},
      PlaceBine};
  return engine;
}

}  // namespace xccl
