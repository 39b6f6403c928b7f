// Rings. allgather: in step s every rank sends its successor the block that started s ranks before it. The
// n-1 steps all keep every link of the ring busy. broadcast: the data runs round the ring from the root, cut
// into segments. Several rings each carry a piece of every block (Patarasuk and Yuan, 2009; NCCL's rings).
#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/rings.h"

namespace xccl {
namespace {

void RingAllgather(const Rings& rings, const std::vector<int32_t>& member_of, const Blocks& blocks,
                   Moves& moves) {
  const int32_t k = static_cast<int32_t>(rings.rings.size());
  moves.Reserve(blocks.size() * blocks.size() * rings.rings.size());
  ForRingMoves(rings.rings, [&](Rank owner, int32_t r, Move move) {
    const int32_t member = member_of[owner.index()];
    move.chunks = Share(blocks[member], r, k, member);
    moves.Add(move);
  });
}

void RingBroadcast(const Rings& rings, Rank root, ChunkRange all, Moves& moves) {
  const int32_t k = static_cast<int32_t>(rings.rings.size());
  for (int32_t r = 0; r < k; ++r) {
    const Ring& ring = rings.rings[r];
    const size_t n = ring.order.size();
    const auto start = static_cast<size_t>(std::ranges::find(ring.order, root) - ring.order.begin());
    for (size_t s = 0; s + 1 < n; ++s) {
      const size_t p = (start + s) % n;
      moves.Add({Piece(all, r, k), ring.order[p], ring.order[(p + 1) % n], static_cast<int32_t>(s),
                 TransferOp::kCopy, ring.hops[p]});
    }
  }
}

}  // namespace

StatusOr<Recipe> PlaceRing(const RankGraph& graph, const SynthesisRequest& request) {
  const std::span<const Rank> members = request.collective->ranks();
  XCCL_ASSIGN_OR_RETURN(const Rings rings, PlaceRings(graph, members, "ring"));
  std::vector<int32_t> member_of(static_cast<size_t>(graph.num_ranks()), -1);
  for (size_t i = 0; i < members.size(); ++i) member_of[members[i].index()] = static_cast<int32_t>(i);
  const double n = static_cast<double>(members.size());
  const double total =
      static_cast<double>(rings.bandwidth_bytes_per_s) * static_cast<double>(rings.rings.size());
  // A rank passes on all data in a broadcast, and all blocks except one in an allgather.
  const double passed = BaseOf(request.collective->kind()) == Base::kBroadcast ? 1 : (n - 1) / n;
  Recipe recipe;
  recipe.pieces = static_cast<int32_t>(rings.rings.size());
  recipe.root = members[0];
  recipe.cost = Cost{(n - 1) * static_cast<double>(rings.latency_ps), n > 1 ? passed * 1e12 / total : 0};
  recipe.allgather = [rings, member_of](const Blocks& blocks, Moves& moves) {
    RingAllgather(rings, member_of, blocks, moves);
  };
  recipe.broadcast = [rings](Rank root, ChunkRange all, Moves& moves) {
    RingBroadcast(rings, root, all, moves);
  };
  return recipe;
}

}  // namespace xccl
