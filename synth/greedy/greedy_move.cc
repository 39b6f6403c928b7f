#include "synth/greedy/greedy_move.h"

#include <span>

namespace xccl::greedy {

PathTable LinkPaths(const Topology& topology) {
  PathTable paths;
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const LinkId self(l);
    paths.Intern(std::span(&self, 1));
  }
  return paths;
}

Schedule ScheduleOf(const CopyProblem& problem, const PathTable& paths,
                    const std::vector<GreedyMove>& moves) {
  const Topology& topology = *problem.topology;
  Schedule schedule;
  schedule.num_chunks = problem.chunks;
  schedule.paths = paths;
  schedule.Reserve(static_cast<int64_t>(moves.size()));
  for (const GreedyMove& move : moves) {
    const std::span<const LinkId> links = paths[PathId(move.path)];
    schedule.Add({.first = ChunkId(move.chunk),
                  .count = 1,
                  .src = *topology.RankOf(topology.link(links.front()).from),
                  .dst = *topology.RankOf(topology.link(links.back()).to),
                  .path = PathId(move.path),
                  .op = TransferOp::kCopy,
                  .step = move.step});
  }
  return schedule;
}

}  // namespace xccl::greedy
