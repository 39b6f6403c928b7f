// Each chunk goes down the breadth-first tree of the rank that holds it first: a rank that is k hops away
// gets it in step k - 1. Linear in ranks × links for every chunk.
#include "examples/extending/flood_engine.h"

#include <string>
#include <utility>
#include <vector>

#include "topologies/paths.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "flood";

StatusOr<Synthesis> Flood(const SynthesisRequest& request) {
  Collective collective = request.collective->WithChunks(request.limits.chunks.value_or(1));
  const NeighbourTable neighbours = GpuNeighbours(*request.topology);
  Schedule schedule;
  schedule.num_chunks = collective.num_chunks();
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    const PartId part = collective.PartOf(ChunkId(c));
    const Rank owner =
        collective.spec().root.value_or(collective.ranks()[part.index() % collective.ranks().size()]);
    std::vector<int32_t> hops(static_cast<size_t>(request.topology->num_ranks()), -1);
    std::vector<Rank> reached = {owner};
    hops[owner.index()] = 0;
    for (size_t i = 0; i < reached.size(); ++i) {
      const Rank from = reached[i];
      for (const Neighbour& to : neighbours[from]) {
        if (hops[to.rank.index()] >= 0) continue;
        hops[to.rank.index()] = hops[from.index()] + 1;
        reached.push_back(to.rank);
        schedule.Add(ChunkId(c), 1, from, to.rank, to.path, TransferOp::kCopy, hops[from.index()]);
      }
    }
  }
  Normalize(schedule);
  return Synthesis{.collective = std::move(collective),
                   .schedule = std::move(schedule),
                   .engine = std::string(kName),
                   .note = ""};
}

}  // namespace

Engine FloodEngine() {
  return {.name = kName,
          .summary = "every chunk along one breadth-first tree of its owner; not exact",
          .kinds = {CollectiveKind::kAllgather, CollectiveKind::kBroadcast},
          .make = Flood};
}

}  // namespace xccl
