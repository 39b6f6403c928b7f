// Packs broadcast trees with real weights that together load every link as evenly as possible. The linear
// program over all trees is solved by generating trees as they are needed. The links of one orbit are one
// row, so that a machine of a thousand like ranks is a program of a few rows.
//
// An allreduce is packed with pairs of trees, one that sums up and one that copies down. Each pair's share of
// the buffer is free.
//
// In: roots with demands, one root of each orbit; the orbit of every link; and by orbit the load of each of
// its links from one use by a tree, once the whole group has translated the tree. Out: trees with weights,
// whose load is within `gap` of the least possible unless the rounds run out. Source: column generation for
// packings (Gilmore and Gomory, 1961), smoothed after Wentges (1997).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "synth/common/blocked_links.h"
#include "synth/common/packed_trees.h"
#include "synth/common/tree_grower.h"
#include "topologies/topology.h"

namespace xccl {

struct FractionalPacking;

struct PackingProblem {
  const Topology* topology = nullptr;
  // For an allreduce, the reversed machine, on which the trees up of the pairs grow. Switches then multicast
  // and reduce where they can. Demands are ignored: all roots together carry one byte. Null: no pairs.
  const Topology* reversed = nullptr;
  std::vector<Rank> members;   // the ranks that every tree reaches; other GPUs may relay
  std::vector<Rank> roots;     // representatives: members, distinct
  std::vector<double> demand;  // by root, > 0
  std::vector<int32_t> orbit;  // by link, dense from 0
  std::vector<double> share;   // by orbit: uses by a tree × share = load of each of its links
  // The cost of a picosecond of a rank's distance from the root, in the unit of a byte's seconds on a link.
  // 0: latency only breaks ties.
  double s_per_ps = 0;
  // The price of a tree's latency: so many seconds a byte for each picosecond. The cost of a packing is the
  // load of the busiest link plus this price × the trees' latency, weighted by their shares. At 1e-12 ÷ (all
  // bytes), cost × bytes estimates the time of the collective. 0: latency is free, and only the rate counts.
  double wait_s_per_ps = 0;
  int64_t piece_bytes = 0;            // size of the messages that a rank sends to one child after another
  double gap = 1e-5;                  // relative distance to the bound at which to stop
  double known_bound_s_per_byte = 0;  // the load of the best packing, at which to stop; 0: unknown
  // Go on with cheapest trees once no cheap tree improves the packing: slower, and exact. Not with pairs.
  bool exact = false;
  // The share of the time counted in which slower links block a link (synth/common/blocked_links.h). Above 0
  // all trees are the cheapest. Not where switches multicast or reduce.
  double blocking_weight = 0;
  Direction direction = Direction::kForwards;  // on `topology`
  // A packing of the same members, roots and links at any prices, whose trees the program starts with. Null:
  // none.
  const FractionalPacking* start = nullptr;
  int32_t max_rounds = 120;
  std::function<bool()> stopped = {};  // asked after each round; true ends with the trees so far
};

struct FractionalTree {
  int32_t root = 0;   // index into PackingProblem::roots
  double weight = 0;  // share of the root's demand: a root's weights sum to 1; for pairs all weights sum to 1
  std::vector<PackedArc> arcs;  // parents first
  std::vector<PackedArc> up;    // for a pair: on the reversed machine, parents first
  int64_t latency_ps = 0;       // from the root to its farthest rank; for a pair, of both trees
};

struct FractionalPacking {
  std::vector<FractionalTree> trees;
  std::vector<LinkId> links;  // the links of all arcs
  double s_per_byte = 0;      // load of the busiest link if demands count bytes, without blocking
  int32_t rounds = 0;

  std::span<const LinkId> Links(const PackedArc& arc) const {
    return std::span(links).subspan(static_cast<size_t>(arc.first_link), static_cast<size_t>(arc.num_links));
  }
};

// The trees with integer weights: exact if the fractions are simple, else to 1 ÷ kWeightUnits. part_of: the
// part that each root's trees carry. Trees of weight zero are left out. Requires: no pairs.
PackedTrees RoundToPackedTrees(const FractionalPacking& packing, std::span<const Rank> roots,
                               std::span<const PartId> part_of);

// Integers in proportion to shares that sum to 1: exact if the shares are simple fractions.
std::vector<int64_t> RoundToIntegerWeights(std::span<const double> shares);

// The problem of a machine without symmetry: every member a root, every link its own orbit.
PackingProblem PlainPacking(const Topology& topology, std::vector<Rank> members);

// Requires: every member can be reached from every root. Without trees the solver failed; otherwise every
// root has one. Cost: rounds × (roots × links × log, and a linear program with one column an orbit and root).
FractionalPacking PackTrees(const PackingProblem& problem);

}  // namespace xccl
