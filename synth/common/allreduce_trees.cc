#include "synth/common/allreduce_trees.h"

#include <algorithm>
#include <map>

namespace xccl {
namespace {

// For each edge: the number of edges between its child and the root, itself included, and the most edges
// below its child.
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
  std::map<PathId, int32_t> most_below;  // a transfer to several is as urgent as the most urgent of them
  for (const TreeEdge& edge : edges) {
    int32_t& below = most_below[edge.path];
    below = std::max(below, below_of[edge.child.index()]);
  }
  for (const TreeEdge& edge : edges) levels.below.push_back(most_below[edge.path]);
  return levels;
}

// Chunks of every round and tree. In a plain schedule they go round by round. In a compressed one they go
// member by member, with as many for each.
struct Chunks {
  std::vector<int64_t> weights;
  std::vector<ChunkId> of_round_and_tree;  // round × trees + tree
};

Chunks PlainChunks(const AllreduceTrees& trees, std::span<const int64_t> rounds) {
  Chunks chunks;
  for (const int64_t round : rounds)
    for (const AllreduceTree& tree : trees.trees) {
      chunks.of_round_and_tree.emplace_back(static_cast<int64_t>(chunks.weights.size()));
      chunks.weights.push_back(tree.weight * round);
    }
  return chunks;
}

Chunks CompressedChunks(const AllreduceTrees& trees, std::span<const int64_t> rounds,
                        const Collective& collective, const SymmetryGroup& group) {
  std::vector<std::vector<size_t>> trees_of(static_cast<size_t>(group.num_rank_orbits()));
  size_t most = 0;
  for (size_t t = 0; t < trees.trees.size(); ++t) {
    std::vector<size_t>& here = trees_of[static_cast<size_t>(group.OrbitOf(trees.trees[t].root))];
    here.push_back(t);
    most = std::max(most, here.size() * rounds.size());
  }
  Chunks chunks;
  chunks.of_round_and_tree.resize(rounds.size() * trees.trees.size());
  for (const Rank member : collective.ranks()) {
    const size_t first = chunks.weights.size();
    const int32_t orbit = group.OrbitOf(member);
    for (size_t r = 0; r < rounds.size(); ++r)
      for (const size_t t : trees_of[static_cast<size_t>(orbit)]) {
        if (group.Representative(orbit) == member)
          chunks.of_round_and_tree[r * trees.trees.size() + t] =
              ChunkId(static_cast<int64_t>(chunks.weights.size()));
        chunks.weights.push_back(trees.trees[t].weight * rounds[r]);
      }
    chunks.weights.resize(first + most, 0);
  }
  return chunks;
}

}  // namespace

ChunkedSchedule MakeAllreduceSchedule(const AllreduceTrees& trees, std::span<const int64_t> rounds,
                                      const Collective& collective, const SymmetryGroup* symmetry) {
  int32_t ranks = 0, longest = 0;
  for (const AllreduceTree& tree : trees.trees) {
    ranks = std::max(ranks, tree.root.value + 1);
    for (const auto* edges : {&tree.up, &tree.down})
      for (const TreeEdge& edge : *edges)
        ranks = std::max({ranks, edge.parent.value + 1, edge.child.value + 1});
  }
  std::vector<Levels> up, down;
  for (const AllreduceTree& tree : trees.trees) {
    up.push_back(LevelsOf(tree.up, ranks));
    down.push_back(LevelsOf(tree.down, ranks));
    longest = std::max(longest, up.back().deepest + down.back().deepest);
  }
  const Chunks chunks = symmetry != nullptr ? CompressedChunks(trees, rounds, collective, *symmetry)
                                            : PlainChunks(trees, rounds);
  ChunkedSchedule result{collective.WithWeights({chunks.weights}), {}};
  Schedule& schedule = result.schedule;
  schedule.num_chunks = result.collective.num_chunks();
  schedule.paths = trees.paths;
  if (symmetry != nullptr) schedule.symmetry = symmetry->generators();
  for (size_t c = 0; c < chunks.of_round_and_tree.size(); ++c) {
    const size_t t = c % trees.trees.size();
    const AllreduceTree& tree = trees.trees[t];
    const ChunkId chunk = chunks.of_round_and_tree[c];
    const int32_t last = static_cast<int32_t>(c) + longest;
    for (size_t i = 0; i < tree.up.size(); ++i)
      if (const TreeEdge& edge = tree.up[i]; !edge.shared)
        schedule.Add({chunk, 1, edge.child, edge.parent, edge.path, TransferOp::kReduce,
                      last - down[t].deepest - up[t].depth[i]});
    for (size_t i = 0; i < tree.down.size(); ++i)
      if (const TreeEdge& edge = tree.down[i]; !edge.shared)
        schedule.Add(
            {chunk, 1, edge.parent, edge.child, edge.path, TransferOp::kCopy, last - down[t].below[i] - 1});
  }
  Normalize(schedule);
  return result;
}

}  // namespace xccl
