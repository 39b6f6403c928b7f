// Where a rank has one port, a broadcast is fastest when each byte goes root -> one rank -> all others: the
// root sends everything once, the others share the rest, and no path is longer than two messages. On one host
// or domain the root deals its chunks out to the ranks in turn, and each rank sends what it was dealt to all
// others. On several hosts of equal size the root deals chunks to the GPUs of its host, the k-th GPU deals
// its chunks along its rail to the other hosts in turn, the host that gets one sends it to the others of its
// rail, and in every host the k-th GPU sends it to the rest. Every chunk has a tree of depth 2, or 4. The
// broadcast of van de Geijn's scatter and allgather, with both parts at the same time.
#include <fmt/core.h>

#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "spread";

// Chunks that a lane is dealt, one after the other: while the last is passed on the first links are idle, so
// the time is 1 + 1 / turns of the least, and messages grow with the turns.
constexpr int64_t kMostTurns = 8;
constexpr int64_t kLeastChunkBytes = 4 << 10;

struct Spread {
  Positions positions;  // the k-th GPU of host h stands at h × gpus + k
  int32_t hosts = 1, gpus = 1;

  Rank At(int32_t host, int32_t gpu) const { return positions.rank[static_cast<size_t>(host * gpus + gpu)]; }
  // Ways that a chunk can take.
  int32_t Lanes() const { return hosts == 1 ? gpus - 1 : gpus * (hosts - 1); }

  // Chunk i takes lane i modulo lanes; steps go by depth, or by turns as well. Whoever is dealt a chunk sends
  // it to those before itself: to those behind, all would send to the same one at the same time.
  void Broadcast(Rank root, ChunkRange all, bool in_turn, Moves& moves) const {
    const int32_t at = positions.Of(root), home = at / gpus, own = at % gpus;
    for (int32_t i = 0; i < all.count; ++i) {
      const ChunkRange chunk{all.first + i, 1};
      int32_t step = in_turn ? i : 0;
      if (hosts == 1) {
        const int32_t relay = (own + 1 + i % (gpus - 1)) % gpus;
        moves.Add({chunk, root, At(0, relay), step++});
        Inside(chunk, 0, relay, own, step, moves);
        continue;
      }
      const int32_t k = (own + i) % gpus, turn = i / gpus;
      const int32_t relay = (home + 1 + turn % (hosts - 1)) % hosts;
      moves.Add({chunk, root, At(home, k), step++});
      moves.Add({chunk, At(home, k), At(relay, k), step++});
      // The root's own lane is spread in its host by the others, so that it sends everything only once.
      if (k == own && gpus > 1) {
        const int32_t other = (own + 1 + turn % (gpus - 1)) % gpus;
        moves.Add({chunk, root, At(home, other), step - 1});
        Inside(chunk, home, other, own, step, moves);
      } else {
        Inside(chunk, home, k, own, step - 1, moves);
      }
      for (int32_t d = 1; d < hosts; ++d) {
        const int32_t host = (relay + hosts - d) % hosts;
        if (host == home) continue;
        moves.Add({chunk, At(relay, k), At(host, k), step});
        Inside(chunk, host, k, -1, step + 1, moves);
      }
      Inside(chunk, relay, k, -1, step, moves);
    }
  }

  // From the k-th GPU of a host to all others but the one that has it.
  void Inside(ChunkRange chunk, int32_t host, int32_t k, int32_t has_it, int32_t step, Moves& moves) const {
    for (int32_t d = 1; d < gpus; ++d)
      if (const int32_t to = (k + gpus - d) % gpus; to != has_it)
        moves.Add({chunk, At(host, k), At(host, to), step});
  }

  // The two ranks that a chunk would have to pass between though they are not next to each other, if any.
  std::optional<std::pair<Rank, Rank>> Apart(const RankGraph& graph) const {
    const auto apart = [&](Rank a, Rank b) { return a != b && !graph.Find(a, b); };
    for (int32_t h = 0; h < hosts; ++h)
      for (int32_t k = 0; k < gpus; ++k) {
        for (int32_t j = 0; j < gpus; ++j)
          if (apart(At(h, k), At(h, j))) return std::pair(At(h, k), At(h, j));
        for (int32_t other = 0; other < hosts; ++other)
          if (apart(At(h, k), At(other, k))) return std::pair(At(h, k), At(other, k));
      }
    return std::nullopt;
  }
};

StatusOr<Spread> MakeSpread(const RankGraph& graph, std::span<const Rank> members) {
  Spread made;
  if (const StatusOr<Hosts> hosts = EqualHosts(graph, members, kName); hosts.ok()) {
    made = {hosts->positions, hosts->hosts, hosts->gpus};
  } else {
    made.positions = DomainPositions(graph, members);
    made.gpus = made.positions.size();
  }
  if (made.positions.size() < 3)
    return InvalidInput(fmt::format("{}: {} ranks; expected at least 3; hint: --engine=direct", kName,
                                    made.positions.size()));
  if (const auto apart = made.Apart(graph))
    return InvalidInput(
        fmt::format("{}: ranks {} and {} are not next to each other; expected all of a host, and "
                    "the k-th of all hosts, to be; hint: --engine=forest",
                    kName, apart->first.value, apart->second.value));
  return made;
}

}  // namespace

StatusOr<Recipe> PlaceSpread(const RankGraph& graph, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Spread spread, MakeSpread(graph, request.collective->ranks()));
  const int32_t lanes = spread.Lanes();
  const int64_t turns = std::clamp<int64_t>(request.size_bytes / lanes / kLeastChunkBytes, 1, kMostTurns);
  Recipe recipe;
  recipe.pieces = static_cast<int32_t>(turns * lanes);
  recipe.pipelines = true;
  // Measured on a chunk of each lane, all at once; then the turns.
  Moves once;
  spread.Broadcast(*request.collective->spec().root, {0, lanes}, false, once);
  Cost cost = MeasureMoves(once, graph, 1.0 / lanes, true, request.model);
  cost.ps_per_byte *= 1 + 1.0 / static_cast<double>(turns);
  recipe.cost = cost;
  recipe.broadcast = [spread](Rank root, ChunkRange all, Moves& moves) {
    spread.Broadcast(root, all, true, moves);
  };
  return recipe;
}

}  // namespace xccl
