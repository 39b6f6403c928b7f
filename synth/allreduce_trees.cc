#include "synth/allreduce_trees.h"

#include <algorithm>

namespace xccl {
namespace {

// By edge: how many lie between its child and the root, itself included; and the most that lie below its
// child.
struct Levels {
  std::vector<int32_t> depth, below;
  int32_t deepest = 0;
};

Levels LevelsOf(const std::vector<TreeEdge>& edges, int32_t ranks) {
  Levels levels;
  std::vector<int32_t> depth_of(static_cast<size_t>(ranks), 0), below_of(static_cast<size_t>(ranks), 0);
  for (const TreeEdge& edge : edges) {
    const int32_t depth = depth_of[edge.parent.index()] + 1;
    depth_of[edge.child.index()] = depth;
    levels.depth.push_back(depth);
    levels.deepest = std::max(levels.deepest, depth);
  }
  for (size_t i = edges.size(); i-- > 0;) {
    int32_t& below = below_of[edges[i].parent.index()];
    below = std::max(below, below_of[edges[i].child.index()] + 1);
  }
  for (const TreeEdge& edge : edges) levels.below.push_back(below_of[edge.child.index()]);
  return levels;
}

}  // namespace

ChunkedSchedule MakeAllreduceSchedule(const AllreduceTrees& trees, int32_t rounds,
                                      const Collective& collective) {
  int32_t ranks = 0, longest = 0;
  for (const AllreduceTree& tree : trees.trees) {
    ranks = std::max(ranks, tree.root.value + 1);
    for (const auto* edges : {&tree.up, &tree.down})
      for (const TreeEdge& edge : *edges)
        ranks = std::max({ranks, edge.parent.value + 1, edge.child.value + 1});
  }
  std::vector<int64_t> weights;
  std::vector<Levels> up, down;
  for (const AllreduceTree& tree : trees.trees) {
    weights.push_back(tree.weight);
    up.push_back(LevelsOf(tree.up, ranks));
    down.push_back(LevelsOf(tree.down, ranks));
    longest = std::max(longest, up.back().deepest + down.back().deepest);
  }
  std::vector<int64_t> all;
  for (int32_t round = 0; round < rounds; ++round) all.insert(all.end(), weights.begin(), weights.end());
  ChunkedSchedule result{collective.WithWeights({all}), {}};
  Schedule& schedule = result.schedule;
  schedule.num_chunks = result.collective.num_chunks();
  schedule.paths = trees.paths;
  for (int32_t c = 0; c < schedule.num_chunks; ++c) {
    const size_t t = static_cast<size_t>(c) % trees.trees.size();
    const AllreduceTree& tree = trees.trees[t];
    for (size_t i = 0; i < tree.up.size(); ++i)
      schedule.Add({ChunkId(c), 1, tree.up[i].child, tree.up[i].parent, tree.up[i].path, TransferOp::kReduce,
                    c + longest - down[t].deepest - up[t].depth[i]});
    for (size_t i = 0; i < tree.down.size(); ++i)
      schedule.Add({ChunkId(c), 1, tree.down[i].parent, tree.down[i].child, tree.down[i].path,
                    TransferOp::kCopy, c + longest - down[t].below[i] - 1});
  }
  Normalize(schedule);
  return result;
}

}  // namespace xccl
