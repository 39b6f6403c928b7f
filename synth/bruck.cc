// Bruck. allgather: in step s every rank gets from the one 2^s positions on all that it has of the next 2^s
// blocks: ceil(log2 n) steps for every n. alltoall: a block that must go d positions on moves in the steps of
// d's bits. (Bruck, Ho, Kipnis, Upfal and Weathersby, 1997.)
#include <algorithm>

#include "synth/engines.h"
#include "synth/positions.h"

namespace xccl {
namespace {

void BruckAllgather(const Positions& positions, const Blocks& blocks, Moves& moves) {
  const int32_t n = positions.size();
  std::vector<int32_t> sent;
  int32_t step = 0;
  for (int32_t distance = 1; distance < n; distance *= 2, ++step) {
    const int32_t count = std::min(distance, n - distance);
    for (int32_t p = 0; p < n; ++p) {
      const int32_t from = (p + distance) % n;
      sent.clear();
      for (int32_t i = 0; i < count; ++i) sent.push_back(positions.member[(from + i) % n]);
      SendBlocks(blocks, sent, positions.rank[from], positions.rank[p], step, moves);
    }
  }
}

void BruckAlltoall(const Positions& positions, const Pairs& pairs, Moves& moves) {
  const int32_t n = positions.size();
  int32_t step = 0;
  for (int32_t distance = 1; distance < n; distance *= 2, ++step) {
    for (int32_t source = 0; source < n; ++source) {
      for (int32_t offset = distance; offset < n; ++offset) {
        if ((offset & distance) == 0) continue;
        const int32_t from = (source + (offset & (distance - 1))) % n, to = (from + distance) % n;
        moves.Add({pairs.Of(positions.member[source], positions.member[(source + offset) % n]),
                   positions.rank[from], positions.rank[to], step, TransferOp::kCopy, std::nullopt});
      }
    }
  }
}

StatusOr<Recipe> PlaceBruck(const Ground& ground, const SynthesisRequest& request) {
  const Positions positions = IslandPositions(ground, request.collective->ranks());
  const int32_t n = positions.size();
  Recipe recipe;
  recipe.root = positions.rank[0];
  recipe.allgather = [positions](const Blocks& blocks, Moves& moves) {
    BruckAllgather(positions, blocks, moves);
  };
  recipe.alltoall = [positions](const Pairs& pairs, Moves& moves) { BruckAlltoall(positions, pairs, moves); };
  if (request.collective->kind() == CollectiveKind::kAlltoall ||
      request.collective->kind() == CollectiveKind::kAlltoallv) {
    // In every step half of a rank's buffer moves.
    Moves steps;
    for (int32_t distance = 1, step = 0; distance < n; distance *= 2, ++step)
      for (int32_t p = 0; p < n; ++p)
        steps.Add({{0, 1},
                   positions.rank[p],
                   positions.rank[(p + distance) % n],
                   step,
                   TransferOp::kCopy,
                   std::nullopt});
    recipe.alltoall_cost = MeasureMoves(steps, ground, 0.5, false);
    Router router(ground);
    int64_t hops = 0;
    for (const Move& move : steps.items()) hops += router.Distance(move.src, move.dst).value_or(1);
    recipe.alltoall_hops = static_cast<double>(hops) / 2 / n;
  }
  return recipe;
}

}  // namespace

const TextbookEngine& BruckEngine() {
  static const TextbookEngine engine = {
      "bruck",
      "distances 1, 2, 4.. round a circle: ceil(log2 n) steps for every n, for small sizes; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
       CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kAlltoall,
       CollectiveKind::kAlltoallv, CollectiveKind::kBarrier},
      PlaceBruck};
  return engine;
}

}  // namespace xccl
