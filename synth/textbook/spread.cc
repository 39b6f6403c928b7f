// A broadcast for machines on which each rank has one port: the root sends all data once, and the other ranks
// share the remaining sends. It is van de Geijn's scatter and allgather, with both phases at once.
// One host or domain, or hosts of unequal size: the root deals its chunks out to the ranks in turn, and each
// rank spreads its chunks. Several hosts of equal size: the root deals chunks to the GPUs of its host. The
// k-th GPU deals its chunks along its rail to the other hosts in turn. Each chunk is spread along the rail,
// and in every host the k-th GPU sends it to the other GPUs. A lane is the rank, or the GPU number and host,
// that chunks are dealt to.
//
// All chunks follow one timetable. A slot is the time that a port needs for a chunk. A place is a rank, or a
// host, on a circle, counted from the one that the chunk is dealt to. Each chunk is dealt one slot later and
// one rank or host further round than the chunk before. So each has every place in turn. Chunks never meet at
// a port if no two sends of the timetable leave, or reach, the same (place - slot) modulo the number of
// places.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "synth/common/cost_model.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "spread";

// A lane is dealt one chunk in each of its turns. The last of n turns takes 1/n of the time, but each turn
// adds messages. A plan has more than kTurns turns only if it has at most kManyTransfers messages.
constexpr int64_t kTurns = 8, kMostTurns = 16;
// The most random timetables that are tried; fewer on many places, because one costs places³ operations.
constexpr int64_t kTimetables = 100;

// One transfer of a timetable. Places are counted round the circle from place 0, to which the chunk is dealt.
struct Sending {
  int32_t from = 0, to = 0;
  int32_t slot = 0;   // slots after the one in which the chunk is dealt
  int32_t level = 0;  // transfers that brought the chunk from place 0 to `from`
};

// Returns a random timetable in which chunks never meet at a port. Every place that can send in a slot does
// so. A place can send a chunk on `delay` slots after the slot in which the chunk was sent to the place.
// Returns nullopt if a transfer would come after slot `most_slots`.
std::optional<std::vector<Sending>> TimetableOf(int32_t places, int32_t delay, int32_t most_slots,
                                                Random& random) {
  std::vector<Sending> sendings;
  struct Informed {
    int32_t place, slot, level;
  };
  std::vector<Informed> informed = {{0, delay, 0}};
  std::vector<int32_t> open;
  for (int32_t p = 1; p < places; ++p) open.push_back(p);
  random.Shuffle(std::span(open));
  std::vector<bool> leaves(static_cast<size_t>(places), false), reaches = leaves;
  const auto at = [places](int32_t place, int32_t slot) {
    return static_cast<size_t>(((place - slot) % places + places) % places);
  };
  reaches[at(0, 0)] = true;  // when the chunk is dealt
  for (int32_t slot = delay; !open.empty(); ++slot) {
    if (slot > most_slots) return std::nullopt;
    for (size_t i = 0; i < informed.size(); ++i) {
      const Informed from = informed[i];
      if (from.slot > slot || leaves[at(from.place, slot)]) continue;
      const auto to = std::ranges::find_if(open, [&](int32_t p) { return !reaches[at(p, slot)]; });
      if (to == open.end()) continue;
      leaves[at(from.place, slot)] = reaches[at(*to, slot)] = true;
      sendings.push_back({from.place, *to, slot, from.level});
      informed.push_back({*to, slot + delay, from.level + 1});
      open.erase(to);
    }
  }
  return sendings;
}

// Returns the shortest of several random timetables. A timetable may take about 1.5 times as long as sending
// to all places one by one, but no longer. If no timetable is that short, place 0 sends to all places,
// although chunks may then meet at ports. Returns no transfers if there is only one place.
std::vector<Sending> BestTimetable(int64_t places, int32_t delay) {
  const auto n = static_cast<int32_t>(places);
  std::vector<Sending> best;
  Random random(0);
  const int64_t tries =
      std::min(kTimetables, kManyTransfers * kOperationsPerMove / (places * places * places));
  for (int64_t i = 0; i < tries && n > 1; ++i)
    if (auto made = TimetableOf(n, delay, best.empty() ? delay + 3 * n / 2 : best.back().slot - 1, random))
      best = *std::move(made);
  for (int32_t p = 1; p < n && std::ssize(best) + 1 < places; ++p)
    best.push_back({0, n - p, delay + p - 1, 0});
  return best;
}

struct Spread {
  Positions positions;  // the k-th GPU of host h stands at h × gpus + k
  int32_t hosts = 1, gpus = 1;
  std::vector<Sending> timetable = {};

  Rank At(int32_t host, int32_t gpu) const { return positions.rank[static_cast<size_t>(host * gpus + gpu)]; }
  int32_t Lanes() const { return hosts == 1 ? gpus - 1 : gpus * (hosts - 1); }

  // Returns the number of ranks or hosts that chunks are dealt to in turn.
  int32_t Places() const { return (hosts == 1 ? gpus : hosts) - 1; }

  // Adds the broadcast's moves. Chunk i takes lane i modulo Lanes(). If `in_turn`, later chunks start in
  // later steps; otherwise all chunks start in step 0.
  void Broadcast(Rank root, ChunkRange all, bool in_turn, Moves& moves) const {
    const int32_t at = positions.Of(root), home = at / gpus, own = at % gpus;
    for (int32_t i = 0; i < all.count; ++i) {
      const ChunkRange chunk{all.first + i, 1};
      if (hosts == 1) {
        const auto place = [&](int32_t p) { return At(0, (own + 1 + (i + p) % (gpus - 1)) % gpus); };
        const int32_t step = in_turn ? i : 0;
        moves.Add({chunk, root, place(0), step});
        for (const Sending& send : timetable)
          moves.Add({chunk, place(send.from), place(send.to), step + (in_turn ? send.slot : 1 + send.level)});
        continue;
      }
      const int32_t k = (own + i) % gpus, turn = i / gpus;
      const auto place = [&](int32_t p) { return (home + 1 + (turn + p) % (hosts - 1)) % hosts; };
      const int32_t step = in_turn ? turn : 0;
      moves.Add({chunk, root, At(home, k), step});
      moves.Add({chunk, At(home, k), At(place(0), k), step + 1});
      // In the root's host, another GPU spreads the chunks that go along the root's own rail, so that the
      // root sends them only once there.
      if (k == own && gpus > 1) {
        const int32_t other = (own + 1 + turn % (gpus - 1)) % gpus;
        moves.Add({chunk, root, At(home, other), step});
        Inside(chunk, home, other, own, step + 1, moves);
      } else {
        Inside(chunk, home, k, own, step + 1, moves);
      }
      Inside(chunk, place(0), k, -1, step + 2, moves);
      for (const Sending& send : timetable) {
        const int32_t then = step + 1 + (in_turn ? send.slot : 1 + send.level);
        moves.Add({chunk, At(place(send.from), k), At(place(send.to), k), then});
        Inside(chunk, place(send.to), k, -1, then + 1, moves);
      }
    }
  }

  // Adds moves of a chunk from the k-th GPU of a host to the host's other GPUs, except GPU `has_it`.
  void Inside(ChunkRange chunk, int32_t host, int32_t k, int32_t has_it, int32_t step, Moves& moves) const {
    for (int32_t d = 1; d < gpus; ++d)
      if (const int32_t to = (k + gpus - d) % gpus; to != has_it)
        moves.Add({chunk, At(host, k), At(host, to), step});
  }

  // Returns two ranks that are not neighbours though chunks pass between them; nullopt if there are none.
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

// Returns the slots until a chunk that is being sent can be sent on: one slot, plus the latency of the hop.
int32_t SlotsUntilSentOn(const Spread& spread, const RankGraph& graph, double chunk_bytes) {
  const Rank from = spread.At(0, 0), to = spread.hosts == 1 ? spread.At(0, 1) : spread.At(1, 0);
  const Hop& hop = graph.hop(*graph.Find(from, to));
  const double chunk_ps = chunk_bytes * 1e12 / static_cast<double>(hop.bandwidth_bytes_per_s);
  return 1 + static_cast<int32_t>(
                 std::min(1e6, std::ceil(static_cast<double>(hop.latency_ps) / std::max(1.0, chunk_ps))));
}

}  // namespace

StatusOr<Recipe> PlaceSpread(const RankGraph& graph, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(Spread spread, MakeSpread(graph, request.collective->ranks()));
  const int32_t lanes = spread.Lanes();
  const int64_t messages = int64_t{lanes} * (spread.positions.size() - 1);  // messages of one turn
  const int64_t most = std::clamp(kManyTransfers / messages, kTurns, kMostTurns);
  const int64_t turns = std::clamp<int64_t>(request.size_bytes / lanes / kLeastPieceBytes, 1, most);
  const double chunk_bytes = static_cast<double>(request.size_bytes) / static_cast<double>(turns * lanes);
  const int32_t delay = SlotsUntilSentOn(spread, graph, chunk_bytes);
  spread.timetable = BestTimetable(spread.Places(), delay);
  Recipe recipe;
  recipe.pieces = static_cast<int32_t>(turns * lanes);
  recipe.pipelines = true;
  // The cost of all data in one chunk for each lane, all sent at once, plus the share of the slots that come
  // after the last chunk is dealt.
  Moves once;
  spread.Broadcast(*request.collective->spec().root, {0, lanes}, false, once);
  Cost cost = MeasureMoves(once, graph, 1.0 / lanes, true, request.model);
  const int32_t slots = spread.timetable.empty() ? 0 : spread.timetable.back().slot + 1 - delay;
  cost.ps_per_byte *= 1 + static_cast<double>(slots) / static_cast<double>(turns * spread.Places());
  recipe.cost = cost;
  recipe.broadcast = [spread = std::move(spread)](Rank root, ChunkRange all, Moves& moves) {
    spread.Broadcast(root, all, true, moves);
  };
  return recipe;
}

}  // namespace xccl
