// Drawings of items in rows.
#pragma once

#include <cstdint>
#include <vector>

#include "draw/layout/sketch.h"
#include "topologies/topology.h"

namespace xccl {

// Item pairs that links join, each once with the smaller first; `item_of` has -1 for nodes without an item.
std::vector<std::pair<int32_t, int32_t>> JoinedItems(const Topology& topology,
                                                     const std::vector<int32_t>& item_of);

struct ItemRow {
  std::vector<int32_t> items;  // indices in `sketch.items`; in the base row from left to right
  bool arcs_down = false;      // cables within the row bend down, not up
};

// Places rows below each other, from the top one. The items of a row above or below the base row are ordered
// and placed by the middle of their neighbours in rows nearer to the base row. An item alone in its row that
// is joined to many becomes a bar. The base row's x stay as they are. Cables within a row become arcs where
// they pass another item. `width`: the range, from x = 0, over which a row spreads if its items all want one
// place.
void PlaceRows(const std::vector<ItemRow>& rows, size_t base, double top,
               const std::vector<std::pair<int32_t, int32_t>>& joined, double width, Sketch& sketch);

// Sets the x of items side by side from `left`; returns the right end.
double PlaceSideBySide(const std::vector<int32_t>& items, double left, Sketch& sketch);

// A cable between two items of a row: an arc if it passes another.
DrawnCable ArcBetween(const Sketch& sketch, int32_t a, int32_t b, bool down);

}  // namespace xccl
