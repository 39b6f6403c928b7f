// Recognises regular wirings in a graph of numbered vertices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace xccl {

// Vertex v's neighbours, sorted, each once; no loops; symmetric.
using Neighbours = std::vector<std::vector<int32_t>>;

// A grid whose vertices are numbered row-major, the last dimension fastest.
struct GridShape {
  std::vector<int32_t> dims;     // each at least 2
  std::vector<bool> wraps;       // by dimension; a dimension of 2 does not
  std::string ToString() const;  // "torus 4x4", "mesh 2x8", "hypercube 4", "ring 8", "line 3"
};
// The grid that the graph is; with the fewest dimensions, if several grids fit. Cost: linear in the edges for
// each factorisation of the number of vertices that the neighbours of vertex 0 allow.
std::optional<GridShape> FindGrid(const Neighbours& neighbours);

bool IsFullMesh(const Neighbours& neighbours);

}  // namespace xccl
