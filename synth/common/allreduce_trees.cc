// 1. LevelsOf finds for each edge its depth, and the longest path below its child.
// 2. PlainChunks, or CompressedChunks with symmetry, cuts chunks and orders their uses. A use is one chunk on
//    one tree.
// 3. MakeAllreduceSchedule adds the transfers of each use. Let D be the largest sum of the depths of a tree's
//    up-tree and down-tree. Use k (from 0) ends just before step k + D. The root has the sum as many steps
//    earlier as its down-tree is deep.
// 4. A transfer up comes as many steps before the root's sum as its child is deep. A transfer down comes as
//    many steps before the use's last step as the longest path below its child has edges.
#include "synth/common/allreduce_trees.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace xccl {
namespace {

struct Levels {
  std::vector<int32_t> depth;  // by edge: the number of edges from the root to its child
  // By edge: the longest path below its child, in edges; for a multicast, below any of its children.
  std::vector<int32_t> below;
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
  std::map<PathId, int32_t> most_below;  // a multicast is as urgent as its most urgent edge
  for (const TreeEdge& edge : edges) {
    int32_t& below = most_below[edge.path];
    below = std::max(below, below_of[edge.child.index()]);
  }
  for (const TreeEdge& edge : edges) levels.below.push_back(most_below[edge.path]);
  return levels;
}

// One chunk on one tree: the tree carries the chunk up and down.
struct Use {
  size_t tree;
  ChunkId chunk;
};

// In a plain schedule, chunks are numbered in the order of the uses. In a compressed schedule, they are
// numbered member by member, with the same number of chunks for each member.
struct Chunks {
  std::vector<int64_t> weights;
  std::vector<Use> uses;  // in the order of their steps
};

// Computes the data that is sent before a point in time. Time runs from 0 to 1, and all rounds take equally
// long.
class Progress {
 public:
  explicit Progress(std::span<const int64_t> rounds) : before_{0} {
    for (const int64_t round : rounds) before_.push_back(before_.back() + static_cast<double>(round));
  }

  // Returns the data sent before `time`, in units of the rounds' weights.
  double At(double time) const {
    const double place = time * static_cast<double>(before_.size() - 1);
    const size_t round = std::min(before_.size() - 2, static_cast<size_t>(place));
    return std::lerp(before_[round], before_[round + 1], place - static_cast<double>(round));
  }

 private:
  std::vector<double> before_;  // the data sent before each round, and all data as the last entry
};

// Cuts each tree's share into a number of chunks in proportion to the tree's weight, or into one chunk if
// there is one round.
Chunks PlainChunks(const AllreduceTrees& trees, std::span<const int64_t> rounds) {
  struct Timed {
    double middle;  // the middle of the time in which the tree carries the chunk
    size_t tree;
    int64_t weight;
  };
  int64_t total = 0, most = 1;
  for (const AllreduceTree& tree : trees.trees) {
    total += tree.weight;
    most = std::max(most, tree.weight);
  }
  const Progress progress(rounds);
  const auto scale = static_cast<double>(std::max<int64_t>(1, kWeightUnits / most));
  const int64_t all = static_cast<int64_t>(rounds.size() * trees.trees.size());
  std::vector<Timed> timed;
  for (size_t t = 0; t < trees.trees.size(); ++t) {
    const auto weight = static_cast<double>(trees.trees[t].weight);
    const int64_t uses = rounds.size() == 1
                             ? 1
                             : std::max<int64_t>(1, std::llround(static_cast<double>(all) * weight /
                                                                 static_cast<double>(total)));
    const auto before = [&](int64_t use) {
      return std::llround(scale * weight * progress.At(static_cast<double>(use) / static_cast<double>(uses)));
    };
    for (int64_t use = 0; use < uses; ++use)
      timed.push_back({(static_cast<double>(use) + 0.5) / static_cast<double>(uses), t,
                       std::max<int64_t>(1, before(use + 1) - before(use))});
  }
  std::ranges::stable_sort(timed, {}, &Timed::middle);
  int64_t common = 0;
  for (const Timed& use : timed) common = std::gcd(common, use.weight);
  Chunks chunks;
  for (const Timed& use : timed) {
    chunks.uses.push_back({use.tree, ChunkId(static_cast<int64_t>(chunks.weights.size()))});
    chunks.weights.push_back(use.weight / common);
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
  chunks.uses.resize(rounds.size() * trees.trees.size(), {0, ChunkId(0)});
  for (const Rank member : collective.ranks()) {
    const size_t first = chunks.weights.size();
    const int32_t orbit = group.OrbitOf(member);
    for (size_t r = 0; r < rounds.size(); ++r)
      for (const size_t t : trees_of[static_cast<size_t>(orbit)]) {
        if (group.Representative(orbit) == member)
          chunks.uses[r * trees.trees.size() + t] = {t, ChunkId(static_cast<int64_t>(chunks.weights.size()))};
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
  for (size_t u = 0; u < chunks.uses.size(); ++u) {
    const auto [t, chunk] = chunks.uses[u];
    const AllreduceTree& tree = trees.trees[t];
    const int32_t last = static_cast<int32_t>(u) + longest;
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
