// Broadcast trees with real weights that together load every link as evenly as can be: the linear program
// over all trees, solved by generating trees as they are needed. Links that symmetry makes alike are one row,
// so a machine of a thousand like ranks is a program of a few rows.
//
// An allreduce is packed with pairs of trees, one that sums up and one that copies down, which share the
// links; how much each root's pairs carry is free.
//
// Input: roots with demands, one of each orbit; for every link its orbit and the share of a tree's use that
// falls on each link of the orbit once the tree is translated by the whole group. Output: trees with weights;
// their loads are within `gap` of the least possible, or the limit of rounds is reached.
// Source: column generation for packings (Gilmore and Gomory, 1961), smoothed after Wentges (1997).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "synth/common/packed_trees.h"
#include "synth/common/tree_grower.h"
#include "topologies/topology.h"

namespace xccl {

struct PackingProblem {
  const Topology* topology = nullptr;
  // Present: pairs for an allreduce, of which the trees up are grown on this machine, turned round. Switches
  // that multicast or reduce then do. Demands are not looked at: all roots together carry one byte.
  const Topology* reversed = nullptr;
  std::vector<Rank> members;   // whom every tree reaches; other GPUs may pass on what they get
  std::vector<Rank> roots;     // representatives: members, distinct
  std::vector<double> demand;  // by root, > 0
  std::vector<int32_t> orbit;  // by link, dense from 0
  std::vector<double> share;   // by orbit: uses by a tree × share = load of each of its links
  // What a picosecond of a rank's distance from the root costs beside the seconds that a byte costs; 0:
  // latency breaks ties alone.
  double s_per_ps = 0;
  double gap = 1e-5;                  // relative, to the bound
  double known_bound_s_per_byte = 0;  // no packing is better: stop there; 0: unknown
  int32_t max_rounds = 120;
  std::function<bool()> stopped = {};  // asked after each round: then what there is
};

struct FractionalTree {
  int32_t root = 0;             // index into PackingProblem::roots
  double weight = 0;            // of the root's demand; a root's weights sum to 1; of pairs, all weights do
  std::vector<PackedArc> arcs;  // parents first
  std::vector<PackedArc> up;    // of a pair: on the machine turned round, parents first
  int64_t latency_ps = 0;       // to its farthest rank, and from there
};

struct FractionalPacking {
  std::vector<FractionalTree> trees;
  std::vector<LinkId> links;  // of all arcs
  double s_per_byte = 0;      // of the busiest link, when each root's demand counts bytes
  int32_t rounds = 0;

  std::span<const LinkId> Links(const PackedArc& arc) const {
    return std::span(links).subspan(static_cast<size_t>(arc.first_link), static_cast<size_t>(arc.num_links));
  }
};

// The trees with whole weights: exact where the fractions are simple, else to one part in 2^20. part_of:
// the part that each root's trees carry. Trees of weight zero are left out. Requires: no pairs.
PackedTrees WholeTrees(const FractionalPacking& packing, std::span<const Rank> roots,
                       std::span<const PartId> part_of);

// Whole numbers in proportion to shares that sum to 1, exact where these are simple fractions.
std::vector<int64_t> WholeShares(std::span<const double> shares);

// The problem of a machine without symmetry: every member a root, every link its own orbit.
PackingProblem PlainPacking(const Topology& topology, std::vector<Rank> members);

// Requires: every member can be reached from every root. No trees: the solver failed. Else every root has
// one. Cost: rounds × (roots × links × log, and a linear program with one column an orbit and root).
FractionalPacking PackTrees(const PackingProblem& problem);

}  // namespace xccl
