// Ranks that the machine cannot tell apart: GPUs with equal links to the same switches. Trees need to be
// found for one of such a class alone, and one tree stands for all that exchange the members' roles. Where
// one GPU of a switch passes data on to the others, they all take that role in turn, so that their ports are
// loaded alike.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "synth/common/fractional_packing.h"
#include "topologies/topology.h"

namespace xccl::forest {

class Twins {
 public:
  // `alone`: a member whose role is its own, such as the root of a broadcast. Linear in the machine.
  Twins(const Topology& topology, std::span<const Rank> members, std::optional<Rank> alone);

  // Has no class two ranks?
  bool IsTrivial() const { return classes_.size() == members_.size(); }
  int64_t NumRows() const { return num_orbits_ + static_cast<int64_t>(classes_.size()); }

  // Equal links of a class become one row each; with many roots, the first of each class stands for all.
  // Requires: a problem of these members with equal demands.
  void Take(PackingProblem& problem, bool many_roots) const;

  // The packing's trees in all the roles that share their load. A tree of share w is cut into pieces, each
  // with other roles, of at least `least` of everything. The roots of the result are the members, in order,
  // or the single root. own_share: of everything, what a root's trees carry together: one over the members;
  // 1 for the single root and for pairs, whose root is one of the roles. Linear in the arcs of the result.
  FractionalPacking InTurn(const FractionalPacking& packing, std::span<const Rank> roots, bool many_roots,
                           double least) const;

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
  // The ends of stretches of at least `least` in which no role of those classes changes. roots: twins that
  // are a root each, from 0 to 1.
  std::vector<double> Cuts(const std::vector<bool>& turns, Phases phases, size_t roots, double least) const;
  Rank Turned(Rank r, double phase) const;
  std::vector<PackedArc> Turned(const FractionalPacking& packing, std::span<const PackedArc> arcs,
                                double phase, std::vector<LinkId>& links) const;
  std::vector<bool> UnlikeClasses(const FractionalPacking& packing, const FractionalTree& tree) const;

  std::vector<Rank> members_;
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
