#include "synth/greedy/start.h"

#include <span>
#include <vector>

#include "synth/common/bit_table.h"

namespace xccl::greedy {
namespace {

std::optional<std::vector<GreedyMove>> MovesOf(const CopyProblem& problem, const Schedule& copies) {
  std::vector<GreedyMove> moves;
  BitTable sent(problem.topology->num_ranks(), problem.chunks);
  for (int64_t t = 0; t < copies.size(); ++t) {
    const std::span<const LinkId> links = copies.paths[copies.path[t]];
    if (links.size() != 1) return std::nullopt;
    for (int32_t i = 0; i < copies.count[t]; ++i) {
      const int32_t chunk = copies.first[t].value + i;
      if (sent.Get(copies.dst[t].value, chunk)) return std::nullopt;
      sent.Set(copies.dst[t].value, chunk);
      moves.push_back({.chunk = chunk, .path = links[0].value, .step = copies.step[t]});
    }
  }
  if (moves.empty()) return std::nullopt;
  return moves;
}

}  // namespace

std::optional<Schedule> ImproveSchedule(const CopyProblem& problem, const Schedule& copies,
                                        const ImproveOptions& options) {
  const std::optional<std::vector<GreedyMove>> moves = MovesOf(problem, copies);
  if (!moves) return std::nullopt;
  const ImproveResult improved = Improve(problem, *moves, options);
  Schedule schedule;
  schedule.num_chunks = problem.chunks;
  for (const GreedyMove& move : improved.moves) {
    const LinkId link(move.path);
    const Link& ends = problem.topology->link(link);
    schedule.Add(ChunkId(move.chunk), 1, *problem.topology->RankOf(ends.from),
                 *problem.topology->RankOf(ends.to), std::vector{link}, TransferOp::kCopy, move.step);
  }
  Normalize(schedule);
  return schedule;
}

}  // namespace xccl::greedy
