#include "synth/packed_trees.h"

#include <algorithm>

#include "synth/reverse.h"

namespace xccl {
namespace {

// The arcs' steps, from 0.
std::vector<int32_t> StepsOf(const PackedTree& tree, TreeOrder order, int32_t depth, int32_t num_ranks) {
  std::vector<int32_t> steps(tree.arcs.size());
  if (order == TreeOrder::kShallowFirst) {
    for (size_t a = 0; a < tree.arcs.size(); ++a) steps[a] = tree.arcs[a].depth - 1;
    return steps;
  }
  std::vector<int32_t> height(static_cast<size_t>(num_ranks), 0);  // arcs below a rank
  for (size_t a = tree.arcs.size(); a-- > 0;) {
    const TreeArc& arc = tree.arcs[a];
    steps[a] = depth - 1 - height[arc.to.index()];
    height[arc.from.index()] = std::max(height[arc.from.index()], height[arc.to.index()] + 1);
  }
  return steps;
}

struct TreeMove {
  int32_t tree, arc, step, depth, offset;
};

int32_t NumRanks(const PackedTrees& trees) {
  int32_t last = 0;
  for (const PackedTree& tree : trees.trees) {
    last = std::max(last, tree.root.value);
    for (const TreeArc& arc : tree.arcs) last = std::max(last, arc.to.value);
  }
  return last + 1;
}

}  // namespace

int32_t PackedTrees::Depth() const {
  int32_t depth = 0;
  for (const PackedTree& tree : trees)
    for (const TreeArc& arc : tree.arcs) depth = std::max(depth, arc.depth);
  return depth;
}

int64_t PackedTrees::NumArcs() const {
  int64_t arcs = 0;
  for (const PackedTree& tree : trees) arcs += static_cast<int64_t>(tree.arcs.size());
  return arcs;
}

TreeSchedule CopyDown(const PackedTrees& trees, const Collective& whole, const TreeSteps& steps) {
  std::vector<std::vector<int64_t>> weights(static_cast<size_t>(whole.num_parts()));
  std::vector<int32_t> place;  // of a tree's first chunk in its part
  int64_t arcs = 0;
  for (const PackedTree& tree : trees.trees) {
    std::vector<int64_t>& part = weights[tree.part.index()];
    place.push_back(static_cast<int32_t>(part.size()));
    part.insert(part.end(), static_cast<size_t>(steps.slices), tree.weight);
    arcs += static_cast<int64_t>(tree.arcs.size());
  }
  for (std::vector<int64_t>& part : weights)
    if (part.empty()) part.push_back(1);

  TreeSchedule made{.collective = whole.WithWeights(weights), .schedule = {}};
  made.schedule.num_chunks = made.collective.num_chunks();
  made.schedule.paths = trees.paths;
  made.schedule.Reserve(arcs * steps.slices);
  const int32_t depth = trees.Depth(), num_ranks = NumRanks(trees);
  std::vector<TreeMove> moves;
  moves.reserve(static_cast<size_t>(trees.NumArcs()));
  for (size_t t = 0; t < trees.trees.size(); ++t) {
    const PackedTree& tree = trees.trees[t];
    const std::vector<int32_t> step = StepsOf(tree, steps.order, depth, num_ranks);
    for (size_t a = 0; a < tree.arcs.size(); ++a) {
      const TreeArc& arc = tree.arcs[a];
      moves.push_back({.tree = static_cast<int32_t>(t),
                       .arc = static_cast<int32_t>(a),
                       .step = step[a],
                       .depth = arc.depth,
                       .offset = (arc.to.value - arc.from.value + num_ranks) % num_ranks});
    }
  }
  // Of arcs of one step the deeper first: what they wait for comes late, and they cannot make up for it. Then
  // by how far apart the ranks are, so that those behind one switch meet in permutations.
  std::stable_sort(moves.begin(), moves.end(), [](const TreeMove& a, const TreeMove& b) {
    return a.depth != b.depth ? a.depth > b.depth : a.offset < b.offset;
  });
  for (const TreeMove& move : moves) {
    const PackedTree& tree = trees.trees[move.tree];
    const TreeArc& arc = tree.arcs[move.arc];
    const int32_t first = made.collective.FirstChunk(tree.part).value + place[move.tree];
    for (int32_t slice = 0; slice < steps.slices; ++slice)
      made.schedule.Add(Transfer{.first = ChunkId(first + slice),
                                 .count = 1,
                                 .src = arc.from,
                                 .dst = arc.to,
                                 .path = arc.path,
                                 .op = TransferOp::kCopy,
                                 .step = move.step + slice});
  }
  Normalize(made.schedule);
  return made;
}

TreeSchedule SumUp(const PackedTrees& trees, const Topology& topology, const Collective& whole,
                   const TreeSteps& steps) {
  // Backwards the last step is the first: what is to go first must come last.
  const TreeOrder turned =
      steps.order == TreeOrder::kTallFirst ? TreeOrder::kShallowFirst : TreeOrder::kTallFirst;
  TreeSchedule made = CopyDown(trees, whole, {.order = turned, .slices = steps.slices});
  made.schedule = Reverse(made.schedule, topology, made.collective, TransferOp::kReduce);
  return made;
}

}  // namespace xccl
