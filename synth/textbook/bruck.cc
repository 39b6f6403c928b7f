// Bruck. allgather: in step s every rank gets from the one 2^s positions on all that it has of the next 2^s
// blocks: ceil(log2 n) steps for every n. alltoall: a block that must go d positions on moves in the steps of
// d's digits to a radix k, chosen for the size: ceil(log_k n) steps of up to k-1 messages, of a buffer's
// (k-1)/k. A small radix is best where messages cost most. (Bruck, Ho, Kipnis, Upfal and Weathersby, 1997.)
#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"
#include "synth/textbook/radix.h"
#include "synth/textbook/rounds.h"

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

// f(step, weight of the digit): digits of distances below n.
template <typename F>
void ForDigits(int32_t n, int32_t radix, F f) {
  int32_t step = 0;
  for (int64_t weight = 1; weight < n; weight *= radix) f(step++, static_cast<int32_t>(weight));
}

void BruckAlltoall(const Positions& positions, int32_t radix, const Pairs& pairs, Moves& moves) {
  const int32_t n = positions.size();
  ForDigits(n, radix, [&](int32_t step, int32_t weight) {
    for (int32_t source = 0; source < n; ++source) {
      for (int32_t offset = weight; offset < n; ++offset) {
        const int32_t digit = offset / weight % radix;
        if (digit == 0) continue;
        const int32_t from = (source + offset % weight) % n, to = (from + digit * weight) % n;
        moves.Add({pairs.Of(positions.member[source], positions.member[(source + offset) % n]),
                   positions.rank[from], positions.rank[to], step, TransferOp::kCopy, std::nullopt});
      }
    }
  });
}

// A move a message, of as many chunks as it has blocks.
Moves AlltoallLoads(const Positions& positions, int32_t radix) {
  const int32_t n = positions.size();
  Moves moves;
  ForDigits(n, radix, [&](int32_t step, int32_t weight) {
    std::vector<int32_t> blocks(static_cast<size_t>(radix), 0);
    for (int32_t offset = weight; offset < n; ++offset) ++blocks[offset / weight % radix];
    for (int32_t digit = 1; digit < radix; ++digit)
      for (int32_t p = 0; p < n; ++p)
        moves.Add({{0, blocks[digit]},
                   positions.rank[p],
                   positions.rank[static_cast<size_t>((p + int64_t{digit} * weight) % n)],
                   step,
                   TransferOp::kCopy,
                   std::nullopt});
  });
  return moves;
}

void PlaceAlltoall(const Positions& positions, const RankGraph& graph, const SynthesisRequest& request,
                   Recipe& recipe) {
  const int32_t n = positions.size();
  const int32_t radix = BestRadix(n, int64_t{n} * CeilLog2(n), [&](int32_t k) {
    return MovesTimePs(AlltoallLoads(positions, k), graph, request, 1.0 / n);
  });
  recipe.alltoall = [positions, radix](const Pairs& pairs, Moves& moves) {
    BruckAlltoall(positions, radix, pairs, moves);
  };
  recipe.alltoall_hops = CeilLog2(n);
  if (n > kMostMeasured) return;
  const Moves loads = AlltoallLoads(positions, radix);
  recipe.alltoall_cost = MeasureMoves(loads, graph, 1.0 / n, false);
  Router router(graph);
  double hops = 0;
  for (const Move& move : loads.items())
    hops += static_cast<double>(move.chunks.count) * router.Distance(move.src, move.dst).value_or(1);
  recipe.alltoall_hops = hops / n / n;
}

StatusOr<Recipe> PlaceBruck(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  Recipe recipe;
  recipe.root = positions.rank[0];
  recipe.allgather = [positions](const Blocks& blocks, Moves& moves) {
    BruckAllgather(positions, blocks, moves);
  };
  if (request.collective->kind() == CollectiveKind::kAlltoall ||
      request.collective->kind() == CollectiveKind::kAlltoallv)
    PlaceAlltoall(positions, graph, request, recipe);
  return recipe;
}

}  // namespace

const TextbookEngine& BruckEngine() {
  static const TextbookEngine engine = {
      "bruck",
      "distances 1, 2, 4.. round a circle: ceil(log2 n) steps for every n, for small sizes; alltoall to a "
      "radix chosen by size; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
       CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kAlltoall,
       CollectiveKind::kAlltoallv, CollectiveKind::kBarrier},
      PlaceBruck};
  return engine;
}

}  // namespace xccl
