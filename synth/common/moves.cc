// A move between neighbours becomes one transfer for each parallel cable that it uses. A move over relays
// becomes transfers for each hop of its path, in consecutive steps. Each step is stretched to its longest
// path, so the order of steps stays. A rank may then receive a chunk twice: as a relay and as the destination
// of a move. KeepTrees drops the later copy.
#include "synth/common/moves.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

namespace xccl {
namespace {

struct Routes {
  std::vector<std::vector<Rank>> relays;  // by pair of ranks that are not neighbours: a, the relays, b
  std::vector<int32_t> of_move;           // by move: index into relays; -1: the move is one hop
  std::vector<int32_t> first_step;        // by step of the moves: its first step in the schedule
};

StatusOr<Routes> FindRoutes(const Moves& moves, const RankGraph& graph, std::string_view engine) {
  Routes routes;
  int32_t steps = 0;
  bool sums = false;
  std::unordered_map<int64_t, int32_t> route_of;
  for (const Move& move : moves.items()) {
    steps = std::max(steps, move.step + 1);
    sums |= move.op == TransferOp::kReduce;
  }
  std::vector<int32_t> length(static_cast<size_t>(steps) + 1, 1);
  routes.of_move.reserve(moves.items().size());
  for (const Move& move : moves.items()) {
    routes.of_move.push_back(-1);
    if (move.hop || graph.Find(move.src, move.dst)) continue;
    if (sums)
      return InvalidInput(fmt::format(
          "{}: ranks {} and {} exchange partial sums and are not next to each other; expected a path through "
          "no other gpu; hint: --engine=halving-doubling",
          engine, move.src.value, move.dst.value));
    const int64_t pair = int64_t{move.src.value} << 32 | move.dst.value;
    const auto [known, added] = route_of.try_emplace(pair, static_cast<int32_t>(routes.relays.size()));
    if (added) routes.relays.push_back(graph.Route(move.src, move.dst));
    const std::vector<Rank>& route = routes.relays[known->second];
    if (route.empty())
      return InvalidInput(
          fmt::format("{}: no path from rank {} to rank {}; expected one; hint: --engine=auto", engine,
                      move.src.value, move.dst.value));
    length[move.step] = std::max(length[move.step], static_cast<int32_t>(route.size()) - 1);
    routes.of_move.back() = known->second;
  }
  routes.first_step.assign(static_cast<size_t>(steps) + 1, 0);
  for (int32_t s = 0; s < steps; ++s) routes.first_step[s + 1] = routes.first_step[s] + length[s];
  return routes;
}

// Adds the transfers of one hop of a move. Parallel cables divide the chunks into pieces, which they take in
// turns. The turns go on from move to move, so that moves of one chunk use all cables.
class Sender {
 public:
  Sender(const RankGraph& graph, Schedule& schedule)
      : graph_(graph),
        schedule_(schedule),
        path_(static_cast<size_t>(graph.num_hops()), -1),
        turn_(static_cast<size_t>(graph.num_hops()), 0) {}

  void Send(const Move& move, Rank from, Rank to, std::optional<HopId> hop, int32_t step) {
    if (hop) return Over(*hop, move, move.chunks, step);
    const HopId best = *graph_.Find(from, to);
    const int32_t cables = graph_.Parallel(best);
    const int32_t pieces = std::min(cables, move.chunks.count);
    for (int32_t i = 0; i < pieces; ++i) {
      const HopId h(best.value + turn_[best.index()]++ % cables);
      Over(h, move, Piece(move.chunks, i, pieces), step);
    }
  }

 private:
  void Over(HopId h, const Move& move, ChunkRange chunks, int32_t step) {
    int32_t& path = path_[h.index()];
    if (path < 0) path = schedule_.paths.Intern(graph_.Links(h)).value;
    const Hop& hop = graph_.hop(h);
    schedule_.Add(
        Transfer{ChunkId(chunks.first), chunks.count, hop.from, hop.to, PathId(path), move.op, step});
  }

  const RankGraph& graph_;
  Schedule& schedule_;
  std::vector<int32_t> path_, turn_;  // by hop
};

bool AnyMovesTwice(const Moves& moves, int32_t chunks) {
  std::vector<bool> moved(static_cast<size_t>(chunks), false);
  for (const Move& move : moves.items())
    for (int32_t c = move.chunks.first; c < move.chunks.first + move.chunks.count; ++c) {
      if (moved[static_cast<size_t>(c)]) return true;
      moved[static_cast<size_t>(c)] = true;
    }
  return false;
}

}  // namespace

ChunkRange Piece(ChunkRange range, int32_t k, int32_t n) {
  const auto at = [&](int64_t i) { return static_cast<int32_t>(range.count * i / n); };
  return {range.first + at(k), at(k + 1) - at(k)};
}

StatusOr<Schedule> RouteMoves(const Moves& moves, const RankGraph& graph, const CopyGoal& goal, bool repeats,
                              std::string_view engine) {
  XCCL_ASSIGN_OR_RETURN(const Routes routes, FindRoutes(moves, graph, engine));
  Schedule schedule;
  schedule.num_chunks = static_cast<int32_t>(goal.owner.size());
  schedule.Reserve(static_cast<int64_t>(moves.items().size()));
  Sender sender(graph, schedule);
  for (size_t m = 0; m < moves.items().size(); ++m) {
    const Move& move = moves.items()[m];
    const int32_t step = routes.first_step[move.step];
    if (routes.of_move[m] < 0) {
      sender.Send(move, move.src, move.dst, move.hop, step);
      continue;
    }
    const std::vector<Rank>& route = routes.relays[routes.of_move[m]];
    for (size_t i = 0; i + 1 < route.size(); ++i)
      sender.Send(move, route[i], route[i + 1], std::nullopt, step + static_cast<int32_t>(i));
  }
  Normalize(schedule);
  // A chunk with one destination and one move cannot reach a rank twice. A chunk with two moves may.
  const bool may_repeat =
      !routes.relays.empty() && (goal.target.empty() || AnyMovesTwice(moves, schedule.num_chunks));
  if (repeats || may_repeat) schedule = KeepTrees(schedule, goal, graph.num_ranks());
  return schedule;
}

}  // namespace xccl
