// Packs broadcast trees with real weights, so that the load of the busiest link is the least possible. The
// problem is a linear program over all trees. It is solved by column generation, which adds trees only when
// they improve the solution. All links of one orbit share a constraint, so a machine of a thousand equal
// ranks needs only a few constraints.
//
// An allreduce is packed with pairs of trees: one tree sums up to a root, and one copies down from it. The
// packing chooses the share of the buffer that each pair carries.
//
// Input: roots with demands, one root of each orbit; the orbit of every link; and for each orbit the load
// that one use by a tree puts on each of its links, counting all translates of the tree. Output: trees with
// weights. The search ends when their load is within `gap` of a lower bound. It ends earlier if the rounds
// run out, if `stopped` says so, or if no cheap tree improves the packing (see PackingProblem::exact). If
// wait_s_per_ps > 0, it ends only for these three reasons. Source: column generation for packings (Gilmore
// and Gomory, 1961), smoothed after Wentges (1997).
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
  // For an allreduce, the reversed machine, on which the up-trees of the pairs grow. Switches then multicast
  // and reduce if they can. Demands are ignored: all roots together carry one byte. Null: no pairs.
  const Topology* reversed = nullptr;
  std::vector<Rank> members;   // the ranks that every tree reaches; other GPUs may relay
  std::vector<Rank> roots;     // distinct members, one of each orbit
  std::vector<double> demand;  // by root: the data that its trees carry; > 0
  std::vector<int32_t> orbit;  // by link: its orbit; numbers from 0 without gaps
  std::vector<double> share;   // by orbit: load of each of its links ÷ uses by a tree
  // The price of a picosecond of latency from the root, which counts when a tree grows. The unit is the unit
  // of link prices, seconds per byte. 0: latency only breaks ties.
  double s_per_ps = 0;
  // The price of a tree's latency in the packing's cost, in seconds per byte and picosecond. The cost of a
  // packing is the load of the busiest link + this price × the mean latency of the trees, weighted by their
  // shares. At 1e-12 ÷ (all bytes), cost × bytes estimates the time of the collective. 0: only the load
  // counts.
  double wait_s_per_ps = 0;
  int64_t piece_bytes = 0;            // bytes of a message that a rank sends to each child in turn
  double gap = 1e-5;                  // the relative distance to the bound at which to stop
  double known_bound_s_per_byte = 0;  // the known least load, at which to stop; 0: unknown
  // If no cheap tree improves the packing, continue with the cheapest trees: slower, and exact. Must be false
  // for pairs.
  bool exact = false;
  // The weight, from 0 to 1, of the additional time for which slower links block a link
  // (synth/common/blocked_links.h). If it is above 0, all trees are the cheapest. Must be 0 if switches
  // multicast or reduce.
  double blocking_weight = 0;
  Direction direction = Direction::kForwards;  // the direction of data on `topology`
  // A packing with the same members, roots and links, made at any prices. The linear program starts with its
  // trees. Null: the program starts without trees.
  const FractionalPacking* start = nullptr;
  int32_t max_rounds = 120;
  std::function<bool()> stopped = {};  // asked after each round; true: stop with the trees so far
};

struct FractionalTree {
  int32_t root = 0;  // index into PackingProblem::roots
  // The share of the root's demand. The weights of one root sum to 1; for pairs, all weights sum to 1.
  double weight = 0;
  std::vector<PackedArc> arcs;  // parents first; for a pair, the tree that copies down
  std::vector<PackedArc> up;    // for a pair: the tree that sums up, on the reversed machine, parents first
  int64_t latency_ps = 0;       // to the last rank, with pieces if wait_s_per_ps > 0; for a pair, both trees
};

struct FractionalPacking {
  std::vector<FractionalTree> trees;
  std::vector<LinkId> links;  // the links of all arcs
  double s_per_byte = 0;      // load of the busiest link in seconds, if demands are bytes; without blocking
  int32_t rounds = 0;

  std::span<const LinkId> Links(const PackedArc& arc) const {
    return std::span(links).subspan(static_cast<size_t>(arc.first_link), static_cast<size_t>(arc.num_links));
  }
};

// Returns the trees with integer weights. Weights are exact if they are simple fractions; otherwise they are
// rounded to multiples of 1 ÷ kWeightUnits. Leaves out trees of weight zero. `part_of` holds the part that
// each root's trees carry. Requires a packing without pairs.
PackedTrees RoundToPackedTrees(const FractionalPacking& packing, std::span<const Rank> roots,
                               std::span<const PartId> part_of);

// Returns integers in proportion to shares that sum to 1. The integers are exact if the shares are simple
// fractions.
std::vector<int64_t> RoundToIntegerWeights(std::span<const double> shares);

// Returns the problem of a machine without symmetry: every member is a root, and every link is an orbit.
PackingProblem PlainPacking(const Topology& topology, std::vector<Rank> members);

// Solves the problem. Returns no trees if the solver failed; otherwise every root has a tree, or, for pairs,
// at least one root has a pair. Requires that every member can be reached from every root. Cost: rounds ×
// (roots × links × log + one linear program with a variable for each orbit and root).
FractionalPacking PackTrees(const PackingProblem& problem);

}  // namespace xccl
