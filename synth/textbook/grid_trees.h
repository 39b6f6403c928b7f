// Packs spanning trees of a grid or torus for an allreduce. Each tree carries a share of the data: sums go up
// the tree to its root, and copies of the whole come back down. On a mesh of two dimensions with links of one
// bandwidth the trees load links as evenly as any allreduce without sums in switches.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/textbook/arrange.h"
#include "synth/textbook/textbook.h"

namespace xccl {

// Orders of more dimensions are many, and so are their trees.
inline constexpr size_t kMostTreeDims = 3;

// The trees for which the order of dimensions is `order`. The tree with root x holds all lines of order[0];
// of order[1] the lines that pass x in order[0]; of order[2] the line that also passes x in order[1].
struct GridTree {
  std::vector<size_t> order;
  std::vector<int32_t> root;  // coordinates
  int64_t weight = 1;         // share of the data: weight / sum of the weights
};

struct GridTrees {
  Grid grid;
  std::vector<GridTree> trees;  // in the order of their turns: wave by wave
  Cost cost;
};

// Returns at most `most_trees` trees, whose loads on links are as even as their orders of dimensions can make
// them; no trees if one wave needs more. Requires: a machine's own grid of two or three dimensions.
GridTrees PackGridTrees(const Grid& grid, const RankGraph& graph, int64_t most_trees);

// Adds the moves of an allreduce over the trees. Each tree carries one chunk if there is one for each tree,
// and otherwise its share of the chunks.
void AddGridAllreduce(const GridTrees& trees, const Positions& positions, ChunkRange all, Moves& moves);

}  // namespace xccl
