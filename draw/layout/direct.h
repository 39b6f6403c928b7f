// Drawings of machines whose GPUs are joined to each other and to nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "draw/layout/sketch.h"
#include "topologies/topology.h"

namespace xccl {

// Requires: every node is a GPU. Cost: near linear in the links; of wirings that are no grid, quadratic in up
// to 64 items.
Sketch DirectSketch(const Topology& topology);

// Places the items of the sketch on a circle, item i at place[i], clockwise from the top.
void PlaceCircle(const std::vector<int32_t>& place, Sketch& sketch);

}  // namespace xccl
