// Grids, tori and hypercubes recognised by their links, and cycles through all their ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "synth/common/rank_graph.h"

namespace xccl {

// Ranks are row-major, the last dimension fastest, as the topology families number them. Invariants: the
// product of dims is the number of ranks, every dim >= 2; wraps[i] says whether dimension i closes (a
// dimension of 2 never does).
struct Grid {
  std::vector<int32_t> dims;
  std::vector<bool> wraps;
  bool operator==(const Grid&) const = default;

  int32_t num_ranks() const;
  int32_t Stride(size_t dim) const;
};

// The grid that the one-link hops form, when they are exactly those of one; dimensions of 1 leave no trace.
// A single ring or line is a grid of one dimension; a full mesh of 2 or 3 ranks is one too.
std::optional<Grid> DetectGrid(const RankGraph& graph);

// Cycles through all vertices that share no edge, as many as the construction finds (for a torus of k
// dimensions k of them, which use every edge; one for a mesh); none when the grid has no such cycle or is a
// line. Deterministic. A cycle lists every vertex once.
std::vector<std::vector<int32_t>> DisjointCycles(const Grid& grid);

// floor((n-1)/2) edge-disjoint cycles through all n vertices of a complete graph (Walecki's construction).
std::vector<std::vector<int32_t>> CompleteCycles(int32_t n);

}  // namespace xccl
