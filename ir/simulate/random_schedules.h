// Random topologies and schedules for tests of simulations. The schedules do not verify; timing does not
// depend on the data that is sent.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "ir/schedule.h"
#include "ir/testing/graphs.h"
#include "topologies/topology.h"

namespace xccl::testing {

// GPUs joined by random links and through two switches; the paths that a transfer may take.
struct Playground {
  Topology topology;
  std::vector<std::vector<LinkId>> paths;
};

inline Playground RandomPlayground(Random& random) {
  const int32_t gpus = 2 + static_cast<int32_t>(random.Below(4)), nodes = gpus + 2;
  std::vector<Edge> edges;
  const auto add = [&](int32_t from, int32_t to) {
    edges.push_back({from, to, 1 + static_cast<int64_t>(random.Below(4)),
                     static_cast<int64_t>(random.Below(4)) * 100,
                     static_cast<int64_t>(random.Below(3)) * 50});
  };
  for (int32_t a = 0; a < gpus; ++a) {
    for (int32_t b = 0; b < gpus; ++b)
      if (a != b && random.Below(2) == 0) add(a, b);
    add(a, gpus);
    add(gpus + 1, a);
  }
  add(gpus, gpus + 1);
  Playground made{MakeGraph("random", gpus, 2, edges), {}};
  std::vector<LinkId> up(static_cast<size_t>(gpus)), down(static_cast<size_t>(gpus));
  const LinkId middle(made.topology.num_links() - 1);
  for (int32_t l = 0; l < made.topology.num_links(); ++l) {
    const Link& link = made.topology.link(LinkId(l));
    if (link.from.value < gpus && link.to.value < gpus) made.paths.push_back({LinkId(l)});
    if (link.to.value == gpus) up[link.from.index()] = LinkId(l);
    if (link.from.value == nodes - 1) down[link.to.index()] = LinkId(l);
  }
  for (int32_t a = 0; a < gpus; ++a) {
    std::vector<LinkId> multicast = {up[a], middle}, sum;
    for (int32_t b = 0; b < gpus; ++b) {
      if (a == b) continue;
      made.paths.push_back({up[a], middle, down[b]});
      multicast.push_back(down[b]);
      sum.push_back(up[b]);
    }
    made.paths.push_back(multicast);
    sum.push_back(middle);
    sum.push_back(down[a]);
    made.paths.push_back(sum);
  }
  return made;
}

// Timing does not depend on data, so any transfers will do. Many write one (rank, chunk), which tests the
// order in which they land.
inline Schedule RandomSchedule(Random& random, const Playground& playground, int32_t chunks) {
  Schedule schedule;
  schedule.num_chunks = chunks;
  std::vector<Rank> sources, destinations;
  for (int i = 0; i < 12; ++i) {
    const std::vector<LinkId>& path = playground.paths[random.Below(playground.paths.size())];
    PathEnds(playground.topology, path, sources, destinations);
    const int32_t first = static_cast<int32_t>(random.Below(static_cast<uint64_t>(chunks)));
    const int32_t count = 1 + static_cast<int32_t>(random.Below(static_cast<uint64_t>(chunks - first)));
    schedule.Add(ChunkId(first), count, sources[0], destinations[0], path, TransferOp::kReduce,
                 static_cast<int32_t>(random.Below(4)));
  }
  Normalize(schedule);
  return schedule;
}

}  // namespace xccl::testing
