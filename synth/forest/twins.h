// Ranks that the machine cannot tell apart: GPUs with equal links to the same switches. One tree of a
// broadcast stands for all that exchange their roles. Where one GPU of a switch passes data on to the others,
// they all take that role in turn, so that their ports are loaded alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "synth/common/fractional_packing.h"
#include "topologies/topology.h"

namespace xccl::forest {

class Twins {
 public:
  // The root's role is its own. Linear in the machine.
  Twins(const Topology& topology, std::span<const Rank> members, Rank root);

  // Has no class two ranks?
  bool IsTrivial() const { return classes_.size() == members_; }
  int64_t NumRows() const { return num_orbits_ + static_cast<int64_t>(classes_.size()); }

  // Equal links of a class become one row each. Requires: a problem of these members and this root.
  void Take(PackingProblem& problem) const;

  // The packing's trees in all the roles that share their load: each is cut into pieces with other roles, of
  // at least `least` of everything. Linear in the arcs of the result.
  FractionalPacking InTurn(const FractionalPacking& packing, double least) const;

 private:
  struct Place {
    int32_t of = 0, at = 0;  // class, and place in it
  };
  Place PlaceOf(Rank r) const { return place_[r.index()]; }
  struct Phases {
    double begin = 0, end = 1;
  };
  // Can each of so many trees go through all roles, in pieces that are not short?
  bool HasRoomFor(int64_t trees, double least) const;
  // The ends of stretches of at least `least` in which no role of those classes changes.
  std::vector<double> Cuts(const std::vector<bool>& turning, Phases phases, double least) const;
  Rank Turned(Rank r, double phase) const;
  std::vector<PackedArc> Turned(const FractionalPacking& packing, std::span<const PackedArc> arcs,
                                double phase, std::vector<LinkId>& links) const;
  std::vector<bool> UnlikeClasses(const FractionalPacking& packing, const FractionalTree& tree) const;

  size_t members_ = 0;
  std::vector<std::vector<Rank>> classes_;  // in order of the members
  std::vector<Place> place_;                // by rank; class -1: no member
  std::vector<std::vector<LinkId>> links_;  // by rank of a class of several: in the same order for all of it
  std::vector<Rank> owner_;                 // by link: that rank; ids below zero: none
  std::vector<int32_t> turn_;               // by link: place in its owner's links
  std::vector<int32_t> orbit_;              // by link
  std::vector<double> share_;               // by orbit
  int64_t num_orbits_ = 0;
};

}  // namespace xccl::forest
