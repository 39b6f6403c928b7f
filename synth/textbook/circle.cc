// Allgathers on a circle of positions in which all positions do the same. In each step every position sends,
// over one distance, the blocks that started at certain offsets before it.
// `bruck` (Bruck, Ho, Kipnis, Upfal and Weathersby, 1997): in step s each rank receives from the rank 2^s
// positions further on. It receives the next 2^s blocks that it lacks, or all that are left: ceil(log2 n)
// steps for every n.
// alltoall: the distance of a block to its destination is written in digits to a radix k. The block moves by
// one digit in each step: ceil(log_k n) steps of up to k-1 messages, which together carry (k-1)/k of a
// buffer. The radix is chosen for the size; a small radix is best if messages cost more than bytes.
// `nhr`: the nonuniform hierarchical ring of Huawei's collective library (HCCL). The distance d is a power of
// 2, from the largest below n down to 1, so that far messages are small. At distance d a rank sends the
// blocks that started 0, 2d, 4d .. positions before it, if the receiver lacks them: ceil(log2 n) alpha +
// (n-1)/n S beta for every n. The blocks of one message are not neighbours in memory. A broadcast deals
// blocks out down a tree of the same distances, then gathers them.
// `pat`: NCCL's parallel aggregated trees for many ranks (Jeaugey, 2025). Every rank's block goes down the
// same binomial tree, rotated to start at the rank, far children first. A message carries the blocks of up to
// A trees, where A is a power of 2 that keeps the message within a buffer. The first log2 A steps double the
// number of blocks in a message. Then n'/A - 1 steps of A blocks go through the rest of the tree depth first,
// so that few blocks wait to be passed on. Here n' is the least power of 2 that is not below n. Steps in
// which no rank lacks a block are left out, so A = 1 takes n - 1 steps. A small size takes A = n'/2, which
// gives log2 n' steps. Each rank sends (n-1)/n S bytes.
#include <algorithm>
#include <map>

#include "synth/textbook/engines.h"
#include "synth/textbook/radix.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

// Bytes of a connection's buffer (the default of NCCL_BUFFSIZE in NCCL's documentation).
constexpr int64_t kBufferBytes = 4 << 20;

// A step: each position p sends the blocks of the positions p - offset to position p + distance, modulo n.
struct CircleStep {
  int32_t distance = 0;
  std::vector<int32_t> offsets;
};
using CircleSteps = std::vector<CircleStep>;

void CircleAllgather(const Positions& positions, const CircleSteps& steps, const Blocks& blocks,
                     Moves& moves) {
  const int32_t n = positions.size();
  std::vector<int32_t> sent;
  for (size_t s = 0; s < steps.size(); ++s) {
    for (int32_t p = 0; p < n; ++p) {
      sent.clear();
      for (int32_t offset : steps[s].offsets) sent.push_back(positions.member[(p - offset + n) % n]);
      SendBlocks(blocks, sent, positions.rank[p], positions.rank[(p + steps[s].distance) % n],
                 static_cast<int32_t>(s), moves);
    }
  }
}

std::optional<Cost> CircleCost(const Positions& positions, const CircleSteps& steps, const RankGraph& graph) {
  const int32_t n = positions.size();
  if (n > kMostMeasured) return std::nullopt;
  std::map<int32_t, Cost>
      of_block;  // by distance, because finding paths takes long: pat has few distances and many steps
  Cost total;
  for (const CircleStep& step : steps) {
    const auto [cost, is_new] = of_block.try_emplace(step.distance);
    if (is_new) {
      Moves moves;
      for (int32_t p = 0; p < n; ++p)
        moves.Add({{0, 1}, positions.rank[p], positions.rank[(p + step.distance) % n]});
      cost->second = MeasureMoves(moves, graph, 1.0 / n);
    }
    total.fixed_ps += cost->second.fixed_ps;
    total.ps_per_byte += cost->second.ps_per_byte * static_cast<double>(step.offsets.size());
  }
  return total;
}

Recipe CircleRecipe(const Positions& positions, CircleSteps steps, const RankGraph& graph) {
  Recipe recipe;
  recipe.root = positions.rank[0];
  recipe.cost = CircleCost(positions, steps, graph);
  recipe.allgather = [positions, steps = std::move(steps)](const Blocks& blocks, Moves& moves) {
    CircleAllgather(positions, steps, blocks, moves);
  };
  return recipe;
}

CircleSteps BruckSteps(int32_t n) {
  CircleSteps steps;
  for (int32_t distance = 1; distance < n; distance *= 2) {
    CircleStep& step = steps.emplace_back();
    step.distance = n - distance;
    for (int32_t i = 0; i < std::min(distance, n - distance); ++i) step.offsets.push_back((n - i) % n);
  }
  return steps;
}

CircleSteps NhrSteps(int32_t n) {
  CircleSteps steps;
  for (int32_t distance = (1 << CeilLog2(n)) / 2; distance > 0; distance /= 2) {
    CircleStep& step = steps.emplace_back();
    step.distance = distance;
    for (int32_t offset = 0; offset + distance < n; offset += 2 * distance) step.offsets.push_back(offset);
  }
  return steps;
}

// Visits the nodes below node x of a binomial tree of `size` nodes, depth first and far children first. Calls
// f(node, distance from its parent).
template <typename F>
void DepthFirst(int32_t x, int32_t size, F f) {
  const int32_t low = x == 0 ? size : x & -x;
  for (int32_t distance = low / 2; distance > 0; distance /= 2) {
    f(x + distance, distance);
    DepthFirst(x + distance, size, f);
  }
}

// Returns the steps of `pat` for A = `aggregated`. After the first log2 A steps, each step brings blocks to
// the nodes x, x + n' / A, x + 2 n' / A .. of their trees.
CircleSteps PatSteps(int32_t n, int32_t aggregated) {
  const int32_t rest = (1 << CeilLog2(n)) / aggregated;
  CircleSteps steps = NhrSteps(n);
  std::erase_if(steps, [&](const CircleStep& step) { return step.distance < rest; });
  DepthFirst(0, rest, [&](int32_t x, int32_t distance) {
    CircleStep step{distance, {}};
    for (int32_t o = x; o < n; o += rest) step.offsets.push_back(o - distance);
    if (!step.offsets.empty()) steps.push_back(std::move(step));
  });
  return steps;
}

// Returns the A of `pat`: the largest power of 2 up to n'/2 whose blocks together fit a buffer, at least 1.
int32_t Aggregated(int32_t n, int64_t size_bytes) {
  int32_t aggregated = std::max(1, (1 << CeilLog2(n)) / 2);
  while (aggregated > 1 && aggregated * (size_bytes / n) > kBufferBytes) aggregated /= 2;
  return aggregated;
}

// Calls f(step, weight) for each digit of the distances below n, written to base `radix`. One unit of the
// digit is worth `weight`.
template <typename F>
void ForDigits(int32_t n, int32_t radix, F f) {
  int32_t step = 0;
  for (int64_t weight = 1; weight < n; weight *= radix) f(step++, static_cast<int32_t>(weight));
}

void BruckAlltoall(const Positions& positions, int32_t radix, const PairBlocks& pairs, Moves& moves) {
  const int32_t n = positions.size();
  ForDigits(n, radix, [&](int32_t step, int32_t weight) {
    for (int32_t source = 0; source < n; ++source) {
      for (int32_t offset = weight; offset < n; ++offset) {
        const int32_t digit = offset / weight % radix;
        if (digit == 0) continue;
        const int32_t from = (source + offset % weight) % n, to = (from + digit * weight) % n;
        moves.Add({pairs.Of(positions.member[source], positions.member[(source + offset) % n]),
                   positions.rank[from], positions.rank[to], step});
      }
    }
  });
}

// Returns one move for each message of BruckAlltoall, with a chunk for each block of the message.
Moves BruckLoads(const Positions& positions, int32_t radix) {
  const int32_t n = positions.size();
  Moves loads;
  ForDigits(n, radix, [&](int32_t step, int32_t weight) {
    std::vector<int32_t> blocks(static_cast<size_t>(radix), 0);
    for (int32_t offset = weight; offset < n; ++offset) ++blocks[offset / weight % radix];
    for (int64_t digit = 1; digit < radix; ++digit)
      for (int32_t p = 0; p < n; ++p)
        loads.Add({{0, blocks[digit]}, positions.rank[p], positions.rank[(p + digit * weight) % n], step});
  });
  return loads;
}

Recipe BruckAlltoallRecipe(const Positions& positions, const RankGraph& graph,
                           const SynthesisRequest& request) {
  const int32_t n = positions.size();
  const int32_t radix = BestRadix(n, int64_t{n} * CeilLog2(n), [&](int32_t k) {
    return MovesTimePs(BruckLoads(positions, k), graph, request, 1.0 / n);
  });
  Recipe recipe;
  recipe.alltoall = [positions, radix](const PairBlocks& pairs, Moves& moves) {
    BruckAlltoall(positions, radix, pairs, moves);
  };
  recipe.alltoall_hops = CeilLog2(n);
  if (n <= kMostMeasured) SetAlltoallCost(BruckLoads(positions, radix), n, graph, recipe);
  return recipe;
}

}  // namespace

StatusOr<Recipe> PlaceBruck(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  if (BaseOf(request.collective->kind()) == Base::kAlltoall)
    return BruckAlltoallRecipe(positions, graph, request);
  return CircleRecipe(positions, BruckSteps(positions.size()), graph);
}

StatusOr<Recipe> PlaceNhr(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  const Base base = BaseOf(request.collective->kind());
  const CircleSteps steps = NhrSteps(positions.size());
  if (base == Base::kAllgather) return CircleRecipe(positions, steps, graph);
  const Rank root = *request.collective->spec().root;
  const Rounds tree = TreeRounds(StartingAt(positions, root), 2);
  Recipe recipe = RoundsRecipe({tree}, graph, request);
  if (base == Base::kGather) return recipe;
  recipe.pieces = positions.size();
  recipe.repeats = true;
  recipe.broadcast = [tree, steps](Rank, ChunkRange all, Moves& moves) {
    const auto gather = [&](const Blocks& blocks, Moves& later) {
      CircleAllgather(tree.positions, steps, blocks, later);
    };
    DealAndGather(tree, tree.positions.member, all, moves, gather);
  };
  return recipe;
}

StatusOr<Recipe> PlacePat(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  const int32_t n = positions.size();
  return CircleRecipe(positions, PatSteps(n, Aggregated(n, request.size_bytes)), graph);
}

}  // namespace xccl
