// Recognises grids, tori and hypercubes by their links, and finds cycles through all their ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "synth/common/rank_graph.h"

namespace xccl {

// A grid or torus. Ranks are numbered row-major with the last dimension fastest, as the topology families
// number them. Invariants: the product of dims is the number of ranks; every dim >= 2; wraps[i] says whether
// dimension i closes to a ring. A dimension of 2 never closes.
struct Grid {
  std::vector<int32_t> dims;
  std::vector<bool> wraps;
  bool operator==(const Grid&) const = default;

  int32_t num_ranks() const;
  int32_t Stride(size_t dim) const;
};

// Returns the grid that the machine's hops form. Returns nullopt if a hop has more than one link, or if the
// hops form no grid. Dimensions of 1 are left out. A single ring or line is a grid of one dimension, and so
// is a full mesh of 2 or 3 ranks.
std::optional<Grid> DetectGrid(const RankGraph& graph);

// Returns edge-disjoint cycles through all vertices, as many as the construction finds. A torus of k
// dimensions gives k, which use every edge; a mesh gives one. Returns none for a line, for a grid without
// such a cycle, or if the search runs out of work. A cycle lists every vertex once. Deterministic.
std::vector<std::vector<int32_t>> DisjointCycles(const Grid& grid);

// Returns floor((n-1)/2) edge-disjoint cycles through all n vertices of a complete graph (Walecki's
// construction).
std::vector<std::vector<int32_t>> CompleteCycles(int32_t n);

}  // namespace xccl
