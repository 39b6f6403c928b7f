// Cables that a box of another item would hide.
#pragma once

#include "draw/layout/sketch.h"
#include "topologies/topology.h"

namespace xccl {

// Where a straight cable meets an item: at its middle; at a bar, as near to the other end as it goes.
DrawnPoint EndAt(const DrawnItem& item, const DrawnItem& other);

// Gives another form to every straight cable that would pass through the box of a third item: a line between
// the edges that face each other, else the flattest arc that meets no box, else the arc that meets fewest.
// Requires: all items are placed. Cost: cables × items.
void BendHiddenCables(const Topology& topology, Sketch& sketch);

}  // namespace xccl
