#include "synth/common/lag.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "synth/common/blocked_links.h"

namespace xccl {
namespace {

// The ranks at the ends of a path. is_held: the path is a chain with a blocked link (blocked_links.h).
struct Path {
  std::vector<Rank> sources, destinations;
  bool is_held = false;
};

std::vector<Path> PathsOf(const Schedule& schedule, const Topology& topology) {
  const BlockedLinks held(topology, Direction::kForwards, 1);
  std::vector<Path> paths(static_cast<size_t>(schedule.paths.size()));
  std::vector<double> times;
  for (size_t p = 0; p < paths.size(); ++p) {
    const std::span<const LinkId> links = schedule.paths[PathId(static_cast<int64_t>(p))];
    PathEnds(topology, links, paths[p].sources, paths[p].destinations);
    if (!IsChain(topology, links)) continue;
    held.BlockingFactors(links, times);
    paths[p].is_held = std::ranges::any_of(times, [](double t) { return t > 1; });
  }
  return paths;
}

// The largest delays so far, in steps, of the accesses to a chunk at a rank.
struct Later {
  int32_t copied = 0;   // of copies into the chunk
  int32_t written = 0;  // of copies and sums into the chunk
  int32_t read = 0;     // of transfers out of the chunk
};

}  // namespace

Schedule WithLag(const Schedule& schedule, const Topology& topology, int32_t lag) {
  const std::vector<Path> paths = PathsOf(schedule, topology);
  std::unordered_map<int64_t, Later> cells;
  const auto cell = [&](Rank rank, int32_t chunk) -> Later& {
    return cells[int64_t{rank.value} * schedule.num_chunks + chunk];
  };
  Schedule late;
  late.num_chunks = schedule.num_chunks;
  late.paths = schedule.paths;
  late.symmetry = schedule.symmetry;
  for (int64_t t = 0; t < schedule.size(); ++t) {
    Transfer transfer = schedule.at(t);
    const Path& path = paths[transfer.path.index()];
    const int32_t step = transfer.step, end = transfer.first.value + transfer.count;
    transfer.count = 1;
    for (int32_t chunk = transfer.first.value; chunk < end; ++chunk) {
      int32_t later = 0;
      for (const Rank source : path.sources) later = std::max(later, cell(source, chunk).written);
      if (path.is_held) later += lag;
      for (const Rank destination : path.destinations) {
        const Later& there = cell(destination, chunk);
        later =
            std::max({later, there.read, transfer.op == TransferOp::kCopy ? there.written : there.copied});
      }
      for (const Rank source : path.sources) {
        Later& here = cell(source, chunk);
        here.read = std::max(here.read, later);
      }
      for (const Rank destination : path.destinations) {
        Later& there = cell(destination, chunk);
        there.written = std::max(there.written, later);
        if (transfer.op == TransferOp::kCopy) there.copied = std::max(there.copied, later);
      }
      transfer.first = ChunkId(int64_t{chunk});
      transfer.step = step + later;
      late.Add(transfer);
    }
  }
  Normalize(late);
  return late;
}

}  // namespace xccl
