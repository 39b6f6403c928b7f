// A machine as the search for translations sees it: neighbours with the links between them, and colours that
// tell nodes apart. Serves symmetry_find.cc and turned_switches.cc alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/graph/grouped.h"
#include "topologies/topology.h"

namespace xccl {

// A neighbour and a number for the links to it. Equal bonds stand for equal multisets of links, in both
// directions.
struct BondedNode {
  int32_t node;
  int32_t bond;
};

class SymmetryGraph {
 public:
  // Cost: linear, but for the sorting of each node's links.
  explicit SymmetryGraph(const Topology& topology);

  std::span<const BondedNode> Of(int32_t node) const { return neighbours_[node]; }
  // The bond between two nodes, or -1.
  int32_t Bond(int32_t a, int32_t b) const {
    const std::span<const BondedNode> of = Of(a);
    const auto it = std::ranges::lower_bound(of, b, {}, &BondedNode::node);
    return it != of.end() && it->node == b ? it->bond : -1;
  }
  int64_t size() const { return static_cast<int64_t>(neighbours_.first.size() + neighbours_.items.size()); }

 private:
  Grouped<BondedNode> neighbours_;  // by node, in the order of neighbours
};

// Colours are hashes. The first colour of a node follows from its kind and from what it can do.
uint64_t FirstColour(const Node& node);
// A well-spread hash of a number.
uint64_t MixBits(uint64_t x);
// Sets each colour to one that follows from the colours of the node and of its neighbours, but keeps those of
// the nodes in `kept`, if that is not empty. `next` is room for the new colours.
void RefineColours(const SymmetryGraph& graph, std::vector<uint64_t>& colour, std::vector<uint64_t>& next,
                   const std::vector<bool>& kept = {});

// Returns colours such that nodes of one colour have equally coloured neighbours over equal bonds
// (unless the limit on work stops the refinement).
std::vector<uint64_t> ColoursOf(const Topology& topology, const SymmetryGraph& graph);

// Tells ranks apart that no automorphism takes to each other. The sum of all colours, after some rounds of
// refinement that begin with a colour of its own for one node, is equal for a node and its images. The
// arguments must outlive it.
class Signatures {
 public:
  Signatures(const SymmetryGraph& graph, const std::vector<uint64_t>& colour)
      : graph_(graph), colour_(colour) {}

  uint64_t Of(int32_t node);
  // Nodes and neighbours looked at by one call; a look is cheaper than a candidate of a search.
  int64_t work() const { return graph_.size() * kRounds / 4; }

 private:
  static constexpr int32_t kRounds = 6;  // links from a host of a dragonfly or of three tiers to the farthest
  const SymmetryGraph& graph_;
  const std::vector<uint64_t>& colour_;
};

}  // namespace xccl
