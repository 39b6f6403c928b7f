// Partners at distance 2^s. allgather by recursive doubling: what a rank has doubles in every step; played
// backwards it is recursive halving, and both make Rabenseifner's allreduce (Thakur, Rabenseifner and Gropp,
// 2005). `halving-doubling` meets the farthest partner first in the gather, while there is little to send;
// `recursive-doubling` the nearest first, and for an allreduce exchanges whole vectors in log2 n steps.
// Where n is no power of 2, the surplus ranks lend their data to a neighbour first and get the result last.
#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

// Position p of the core stands for members[p]; the surplus of members sits behind some of them.
struct Core {
  std::vector<Rank> rank;
  std::vector<std::vector<int32_t>> members;  // whose blocks start at this core position
  std::vector<std::optional<Rank>> surplus;   // behind it
};

Core MakeCore(const Positions& positions) {
  const int32_t n = positions.size(), power = PowerBelow(n), surplus = n - power;
  Core core;
  for (int32_t p = 0; p < n; ++p) {
    core.rank.push_back(positions.rank[p]);
    core.members.push_back({positions.member[p]});
    core.surplus.push_back(std::nullopt);
    if (static_cast<int32_t>(core.rank.size()) > surplus) continue;
    ++p;
    core.members.back().push_back(positions.member[p]);
    core.surplus.back() = positions.rank[p];
  }
  return core;
}

// Steps taken.
int32_t DoublingAllgather(const Core& core, bool near_first, const Blocks& blocks, int32_t step,
                          Moves& moves) {
  const int32_t power = static_cast<int32_t>(core.rank.size()), logs = CeilLog2(power);
  std::vector<int32_t> one;
  bool any_surplus = false;
  for (int32_t p = 0; p < power; ++p) {
    if (!core.surplus[p]) continue;
    one = {core.members[p][1]};
    SendBlocks(blocks, one, *core.surplus[p], core.rank[p], step, moves);
    any_surplus = true;
  }
  int32_t at = step + (any_surplus ? 1 : 0);
  std::vector<std::vector<int32_t>> held = core.members, next(held.size());
  for (int32_t s = 0; s < logs; ++s, ++at) {
    const int32_t distance = 1 << (near_first ? s : logs - 1 - s);
    for (int32_t p = 0; p < power; ++p) {
      const int32_t partner = p ^ distance;
      SendBlocks(blocks, held[p], core.rank[p], core.rank[partner], at, moves);
    }
    for (int32_t p = 0; p < power; ++p) {
      next[p] = held[p];
      next[p].insert(next[p].end(), held[p ^ distance].begin(), held[p ^ distance].end());
    }
    held.swap(next);
  }
  for (int32_t p = 0; p < power; ++p) {
    if (!core.surplus[p]) continue;
    std::erase(held[p], core.members[p][1]);
    SendBlocks(blocks, held[p], core.rank[p], *core.surplus[p], at, moves);
  }
  return at + (any_surplus ? 1 : 0) - step;
}

// The root deals the core's blocks out, halving what goes on in every step, and all gather them.
void ScatterAllgather(const Core& core, ChunkRange all, Moves& moves) {
  const int32_t power = static_cast<int32_t>(core.rank.size()), logs = CeilLog2(power);
  for (int32_t s = 0; s < logs; ++s) {
    const int32_t half = power >> (s + 1);
    for (int32_t p = 0; p < power; p += 2 * half) {
      const ChunkRange upper{Piece(all, p + half, power).first,
                             Piece(all, p + 2 * half - 1, power).first +
                                 Piece(all, p + 2 * half - 1, power).count -
                                 Piece(all, p + half, power).first};
      moves.Add({upper, core.rank[p], core.rank[p + half], s, TransferOp::kCopy, std::nullopt});
    }
  }
  // Blocks by position: members are renamed, the surplus owns nothing.
  Core dealt = core;
  Blocks blocks;
  for (int32_t p = 0; p < power; ++p) {
    dealt.members[p] = {p};
    dealt.surplus[p] = std::nullopt;
    blocks.push_back(Piece(all, p, power));
  }
  const int32_t step = logs + DoublingAllgather(dealt, false, blocks, logs, moves);
  for (int32_t p = 0; p < power; ++p)
    if (core.surplus[p])
      moves.Add({all, core.rank[p], *core.surplus[p], step, TransferOp::kCopy, std::nullopt});
}

void ExchangeAllreduce(const Core& core, ChunkRange all, Moves& moves) {
  const int32_t power = static_cast<int32_t>(core.rank.size());
  for (int32_t p = 0; p < power; ++p)
    if (core.surplus[p])
      moves.Add({all, *core.surplus[p], core.rank[p], 0, TransferOp::kReduce, std::nullopt});
  int32_t step = 1;
  for (int32_t distance = 1; distance < power; distance *= 2, ++step)
    for (int32_t p = 0; p < power; ++p)
      moves.Add({all, core.rank[p], core.rank[p ^ distance], step, TransferOp::kReduce, std::nullopt});
  for (int32_t p = 0; p < power; ++p)
    if (core.surplus[p])
      moves.Add({all, core.rank[p], *core.surplus[p], step, TransferOp::kCopy, std::nullopt});
}

Recipe DoublingRecipe(const Positions& positions, bool near_first) {
  const Core core = MakeCore(positions);
  Recipe recipe;
  recipe.root = positions.rank[0];
  recipe.allgather = [core, near_first](const Blocks& blocks, Moves& moves) {
    DoublingAllgather(core, near_first, blocks, 0, moves);
  };
  // A surplus rank owns no block of an allreduce.
  for (const std::vector<int32_t>& members : core.members) recipe.allreduce_owners.push_back(members[0]);
  return recipe;
}

StatusOr<Recipe> PlaceHalvingDoubling(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = CubePositions(graph, request.collective->ranks());
  Recipe recipe = DoublingRecipe(positions, false);
  const bool cube = positions.size() == PowerBelow(positions.size());
  recipe.lanes = 1;
  recipe.broadcast_pieces = PowerBelow(positions.size());
  recipe.repeats = true;
  recipe.broadcast = [positions, cube](Rank root, ChunkRange all, Moves& moves) {
    ScatterAllgather(MakeCore(StartingAt(positions, root, cube)), all, moves);
  };
  return recipe;
}

StatusOr<Recipe> PlaceRecursiveDoubling(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = CubePositions(graph, request.collective->ranks());
  Recipe recipe = DoublingRecipe(positions, true);
  recipe.allreduce = [core = MakeCore(positions)](ChunkRange all, Moves& moves) {
    ExchangeAllreduce(core, all, moves);
  };
  return recipe;
}

}  // namespace

const TextbookEngine& HalvingDoublingEngine() {
  static const TextbookEngine engine = {
      "halving-doubling",
      "recursive halving and doubling, far partners while there is little to send; 2 log2 n steps; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
       CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kBroadcast,
       CollectiveKind::kReduce, CollectiveKind::kBarrier},
      PlaceHalvingDoubling};
  return engine;
}

const TextbookEngine& RecursiveDoublingEngine() {
  static const TextbookEngine engine = {
      "recursive-doubling",
      "whole vectors exchanged at distances 1, 2, 4..; log2 n steps, for small sizes; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
       CollectiveKind::kBarrier},
      PlaceRecursiveDoubling};
  return engine;
}

}  // namespace xccl
