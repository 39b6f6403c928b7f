// Where the nodes and cables of a machine are in a drawing, as people draw machines: a ring and a full mesh
// as a circle, a grid as a grid, a cube of grids as a lattice, GPUs in a row under their switch, a host as a
// box with its NICs at the upper edge, the switches of a fabric in tiers above the hosts, groups of routers
// in two rows that face each other. The shape is found in the graph, not in the topology's name.
//
// Machines that are too large to draw are folded: one item then stands for several nodes, and says how many.
// Lengths are in pixels at scale 1, x to the right and y down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

struct DrawnPoint {
  double x = 0, y = 0;
  bool operator==(const DrawnPoint&) const = default;
};

// A rectangle that stands for one node, or for several.
struct DrawnItem {
  double x = 0, y = 0;  // its centre
  double width = 0, height = 0;
  NodeKind kind = NodeKind::kGpu;  // kind of all its nodes; kGpu for a host
  std::vector<std::string> lines;  // one or two lines of text
  std::vector<NodeId> nodes;       // never empty; ascending
  int32_t ranks = 0;               // number of ranks among its nodes
  bool folded = false;             // stands for several nodes
  bool operator==(const DrawnItem&) const = default;
};

// A frame around items: a host, or a group of routers.
struct DrawnFrame {
  std::string label;
  double left = 0, top = 0, width = 0, height = 0;
  DrawnPoint label_at;  // the left end and middle height of the label, within the frame
  bool operator==(const DrawnFrame&) const = default;
};

// All links between two items, in both directions.
struct DrawnCable {
  enum class Form : uint8_t {
    kLine,   // straight from point to point
    kCurve,  // a quadratic curve from the first to the last of three points, drawn to the middle one
    kStubs,  // two pieces, each from an item outwards: points 0 to 1 and 3 to 2; it goes round the grid
  };
  int32_t a = 0, b = 0;  // items, a < b
  std::vector<LinkId> links;
  Form form = Form::kLine;
  std::vector<DrawnPoint> points;  // from a to b
  bool operator==(const DrawnCable&) const = default;
};

// Invariants: 1. every node is in one item; 2. items do not overlap; 3. all is within [0, width] × [0,
// height]; 4. a frame contains its items, and frames do not overlap; 5. a straight cable passes through no
// box of a third item.
struct MachineLayout {
  std::string shape;  // in words: "torus 4x4"; with what folded items stand for
  double width = 0, height = 0;
  std::vector<DrawnItem> items;
  std::vector<DrawnFrame> frames;
  std::vector<DrawnCable> cables;
  std::vector<int32_t> item_of_node;   // by NodeId
  std::vector<int32_t> cable_of_link;  // by LinkId; -1 for a link within one item
  bool operator==(const MachineLayout&) const = default;
};

// Deterministic. Cost: near linear in nodes and links.
MachineLayout LayOut(const Topology& topology);

}  // namespace xccl
