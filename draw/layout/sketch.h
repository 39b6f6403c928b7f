// A drawing in the making: items without cables, placed relative to a corner of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "draw/layout/layout.h"

namespace xccl {

inline constexpr double kGap = 12;         // least distance of two items
inline constexpr double kItemHeight = 28;  // with one line of text
inline constexpr double kMargin = 24;      // around a drawing, and within a frame

struct Sketch {
  std::vector<DrawnItem> items;
  std::vector<DrawnFrame> frames;
  std::vector<DrawnCable> shaped;  // cables whose form is given: only a, b, form and points are set
  double width = 0, height = 0;
  std::string shape;
};

// Which nodes are drawn as one, in order. A topology's nodes are its GPUs, switches and so on.
using NodeGroup = std::vector<NodeId>;

// An item for the nodes, not placed yet: the rank of a GPU, the name of another node, or counts.
DrawnItem MakeItem(const Topology& topology, const NodeGroup& nodes);
double TextWidth(const std::string& text);

// Splits 0..count-1 into at most `most` runs of equal length, or nearly so; returns the first of each and
// the end.
std::vector<int32_t> Runs(int32_t count, int32_t most);

// Moves everything.
void Shift(Sketch& sketch, double dx, double dy);
// Turns it upside down; texts stay upright.
void Flip(Sketch& sketch);
// Puts `part` into `whole` with its corner at (x, y). Items of `shaped` are renumbered.
void Insert(const Sketch& part, double x, double y, Sketch& whole);

}  // namespace xccl
