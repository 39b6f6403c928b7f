// Broadcast trees with real weights that together load every link as evenly as possible. The linear program
// over all trees is solved by generating trees as they are needed. Links that symmetry makes alike are one
// row, so a machine of a thousand like ranks is a program of a few rows.
//
// An allreduce is packed with pairs of trees, one that sums up and one that copies down, which share the
// links. How much each root's pairs carry is free.
//
// Input: roots with demands, one of each orbit. Every link has its orbit, and the share of a tree's use that
// falls on each link of the orbit once the whole group has translated the tree. Output: trees with weights.
// Their loads are within `gap` of the least possible, or the limit of rounds is reached. Source: column
// generation for packings (Gilmore and Gomory, 1961), smoothed after Wentges (1997).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "synth/common/held.h"
#include "synth/common/packed_trees.h"
#include "synth/common/tree_grower.h"
#include "topologies/topology.h"

namespace xccl {

struct FractionalPacking;

struct PackingProblem {
  const Topology* topology = nullptr;
  // The reversed machine, where pairs are packed for an allreduce: their trees up grow on it. Switches then
  // multicast and reduce where they can. Demands are ignored: all roots together carry one byte.
  const Topology* reversed = nullptr;
  std::vector<Rank> members;   // the ranks that every tree reaches; other GPUs may relay
  std::vector<Rank> roots;     // representatives: members, distinct
  std::vector<double> demand;  // by root, > 0
  std::vector<int32_t> orbit;  // by link, dense from 0
  std::vector<double> share;   // by orbit: uses by a tree × share = load of each of its links
  // The cost of a picosecond of a rank's distance from the root, beside the seconds that a byte costs. 0:
  // latency only breaks ties.
  double s_per_ps = 0;
  // What a picosecond of a tree's latency costs beside the seconds of a byte on the busiest link. With one
  // over all bytes, bytes × the cost of a packing is the time of a flow over time along its trees. 0: the
  // trees of the best rate, however deep.
  double wait_s_per_ps = 0;
  int64_t piece_bytes = 0;            // of the messages that a rank sends one after another while others wait
  double gap = 1e-5;                  // relative, to the bound
  double known_bound_s_per_byte = 0;  // no packing is better: stop there; 0: unknown
  // Where no cheap tree is of use any more, go on with the cheapest ones: slower, and exact. Not with pairs.
  bool exact = false;
  // How much of the time counts that links are held by slower ones which feed them (synth/common/held.h).
  // Above 0 all trees are the cheapest. Not where switches multicast or reduce.
  double held_weight = 0;
  DataFlow flow = DataFlow::kForwards;  // on `topology`
  // A packing of the same members, roots and links, whatever these cost there. Its trees are there from the
  // start. Null: none.
  const FractionalPacking* start = nullptr;
  int32_t max_rounds = 120;
  std::function<bool()> stopped = {};  // asked after each round; true ends with the trees so far
};

struct FractionalTree {
  int32_t root = 0;   // index into PackingProblem::roots
  double weight = 0;  // share of the root's demand; a root's weights sum to 1; for pairs, all weights do
  std::vector<PackedArc> arcs;  // parents first
  std::vector<PackedArc> up;    // for a pair: on the reversed machine, parents first
  int64_t latency_ps = 0;       // to its farthest rank, and from there
};

struct FractionalPacking {
  std::vector<FractionalTree> trees;
  std::vector<LinkId> links;  // the links of all arcs
  double s_per_byte = 0;      // load of the busiest link, when each root's demand counts bytes; none is held
  int32_t rounds = 0;

  std::span<const LinkId> Links(const PackedArc& arc) const {
    return std::span(links).subspan(static_cast<size_t>(arc.first_link), static_cast<size_t>(arc.num_links));
  }
};

// The trees with whole weights: exact where the fractions are simple, else to one part in 2^20. part_of:
// the part that each root's trees carry. Trees of weight zero are left out. Requires: no pairs.
PackedTrees WholeTrees(const FractionalPacking& packing, std::span<const Rank> roots,
                       std::span<const PartId> part_of);

// Whole numbers in proportion to shares that sum to 1, exact where the shares are simple fractions.
std::vector<int64_t> WholeShares(std::span<const double> shares);

// The problem of a machine without symmetry: every member a root, every link its own orbit.
PackingProblem PlainPacking(const Topology& topology, std::vector<Rank> members);

// Requires: every member can be reached from every root. Without trees the solver failed; otherwise every
// root has one. Cost: rounds × (roots × links × log, and a linear program with one column an orbit and root).
FractionalPacking PackTrees(const PackingProblem& problem);

}  // namespace xccl
