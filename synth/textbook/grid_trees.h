// Packs spanning trees of a grid or torus for an allreduce. Each tree carries a share of the data: sums go up
// the tree to its root, and copies of the result come back down. On a mesh of two dimensions with links of
// one bandwidth, no allreduce loads its fullest link less, apart from rounding.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/textbook/arrange.h"
#include "synth/textbook/textbook.h"

namespace xccl {

// The most dimensions of a grid. More dimensions have many orders, and every order adds trees.
inline constexpr size_t kMostTreeDims = 3;

// One tree. A rank's way to the root goes along the dimensions in `order`, each as far as the root's
// coordinate. So the tree holds all lines of order[0], the lines of order[1] at the root's coordinate in
// order[0], and of order[2] only the line through the root.
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
// them. Returns no trees if one wave, a tree for each order and root, needs more. Requires: a machine's own
// grid of two or three dimensions.
GridTrees PackGridTrees(const Grid& grid, const RankGraph& graph, int64_t most_trees);

// Adds the moves of an allreduce over the trees. Each tree carries one chunk if there are as many chunks as
// trees, and otherwise its share of the chunks.
void AddGridAllreduce(const GridTrees& trees, const Positions& positions, ChunkRange all, Moves& moves);

}  // namespace xccl
