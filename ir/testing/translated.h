// Random but correct compressed schedules for tests.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl::testing {

inline Collective Make(CollectiveKind kind, int32_t ranks, std::vector<int64_t> counts = {}) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  spec.counts = std::move(counts);
  return Collective::Create(std::move(spec)).value();
}

// Random paths from GPU to GPU that pass through no other GPU.
class RandomPaths {
 public:
  RandomPaths(const Topology& topology, Random& random) : topology_(topology), random_(random) {}
  // A path to a GPU that is not yet reached, or nothing if the random walk ends elsewhere.
  std::vector<LinkId> From(Rank r, const std::vector<int32_t>& reached) {
    std::vector<LinkId> path;
    std::set<int32_t> met;
    NodeId at = topology_.NodeOf(r);
    while (path.empty() || !topology_.IsGpu(at)) {
      met.insert(at.value);
      const std::span<const LinkId> out = topology_.Out(at);
      path.push_back(out[random_.Below(out.size())]);
      at = topology_.link(path.back()).to;
      if (met.contains(at.value)) return {};
    }
    return reached[topology_.RankOf(at)->index()] < 0 ? path : std::vector<LinkId>();
  }

 private:
  const Topology& topology_;
  Random& random_;
};

// Copies one chunk from its root to all over a random tree.
inline void AddTree(const Topology& topology, Random& random, ChunkId chunk, Rank root, int32_t first_step,
                    Schedule& schedule) {
  RandomPaths paths(topology, random);
  std::vector<int32_t> step(static_cast<size_t>(topology.num_ranks()), -1);
  step[root.index()] = first_step;
  for (int32_t left = topology.num_ranks() - 1; left > 0;) {
    const Rank from(static_cast<int64_t>(random.Below(static_cast<uint64_t>(topology.num_ranks()))));
    if (step[from.index()] < 0) continue;
    const std::vector<LinkId> path = paths.From(from, step);
    if (path.empty()) continue;
    const Rank to = *topology.RankOf(topology.link(path.back()).to);
    schedule.Add(chunk, 1, from, to, path, TransferOp::kCopy, step[from.index()]);
    step[to.index()] = step[from.index()] + 1 + static_cast<int32_t>(random.Below(2));
    --left;
  }
}

// Reverses the trees in time and direction, which gives a sum at the root. Requires: a cable is links 2i
// and 2i+1.
inline Schedule Backwards(const Schedule& trees) {
  Schedule sums;
  sums.num_chunks = trees.num_chunks;
  const int32_t steps = trees.num_steps();
  for (int64_t t = trees.size() - 1; t >= 0; --t) {
    std::vector<LinkId> path;
    const std::span<const LinkId> forwards = trees.paths[trees.path[t]];
    for (size_t i = forwards.size(); i-- > 0;) path.push_back(LinkId(forwards[i].value ^ 1));
    sums.Add(trees.first[t], trees.count[t], trees.dst[t], trees.src[t], path, TransferOp::kReduce,
             steps - 1 - trees.step[t]);
  }
  return sums;
}

struct TranslatedAnswer {
  Collective collective;
  Schedule schedule;
};

// A random compressed schedule of the kind, with `chunks` chunks for each rank.
inline TranslatedAnswer Compressed(const Topology& topology, const SymmetryGroup& group, CollectiveKind kind,
                                   int32_t chunks, Random& random) {
  const int32_t n = topology.num_ranks();
  const bool sum = kind == CollectiveKind::kReduceScatter, both = kind == CollectiveKind::kAllreduce;
  const Collective collective = Make(kind, n).WithChunks(both ? chunks * n : chunks);
  Schedule down, up;
  down.num_chunks = up.num_chunks = collective.num_chunks();
  for (int32_t orbit = 0; orbit < group.num_rank_orbits(); ++orbit) {
    const Rank root = group.Representative(orbit);
    for (int32_t c = 0; c < chunks; ++c) {
      AddTree(topology, random, ChunkId(root.value * chunks + c), root, 0, down);
      AddTree(topology, random, ChunkId(root.value * chunks + c), root, 0, up);
    }
  }
  up = Backwards(up);
  Schedule schedule = sum || both ? up : down;
  const int32_t before = up.num_steps();
  if (both)
    for (int64_t t = 0; t < down.size(); ++t)
      schedule.Add(down.first[t], down.count[t], down.src[t], down.dst[t], down.paths[down.path[t]],
                   down.op[t], before + down.step[t]);
  schedule.symmetry = group.generators();
  Normalize(schedule);
  return {collective, std::move(schedule)};
}

}  // namespace xccl::testing
