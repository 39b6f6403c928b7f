// Twins are GPUs with equal links to the same switches, NICs or CPUs, so that the machine looks the same if
// they are exchanged. In a broadcast or reduce, one tree stands for all trees in which twins exchange their
// roles. If one GPU of a switch passes data on to its twins, the twins take this role in turn, so that their
// ports are loaded alike.
//
// A class is a set of ranks that are twins of each other. A rank without twins is a class of its own.
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
  // Finds the classes of the members. The root has no twins. Linear in the machine.
  Twins(const Topology& topology, std::span<const Rank> members, Rank root);

  // Returns whether no rank has a twin.
  bool IsTrivial() const { return classes_.size() == members_; }
  int64_t NumRows() const { return num_orbits_ + static_cast<int64_t>(classes_.size()); }

  // Makes equal links of a class one row of `problem`, which must have the constructor's members and root.
  void Take(PackingProblem& problem) const;

  // Returns the packing's trees with the roles exchanged among twins, so that twins share the load of all
  // trees. Cuts each tree into pieces in which the twins have different roles. Pieces carry at least the
  // share `least` of all data, if their tree does. Linear in the arcs of the result.
  FractionalPacking InTurn(const FractionalPacking& packing, double least) const;

 private:
  struct Place {
    int32_t of = 0, at = 0;  // class; position in the class
  };
  Place PlaceOf(Rank r) const { return place_[r.index()]; }
  // A range of phases. A phase from 0 to 1 says who has which role (see twins.cc).
  struct Phases {
    double begin = 0, end = 1;
  };
  // Returns whether each of `trees` trees can go through all roles in pieces that are not short.
  bool HasRoomFor(int64_t trees, double least) const;
  // Cuts `phases` into stretches and returns their ends. Cuts are at phases where a class in `turning`
  // changes its roles. Cuts that would make a stretch shorter than `least` are left out.
  std::vector<double> Cuts(const std::vector<bool>& turning, Phases phases, double least) const;
  // Returns the rank that has the role of r at the phase.
  Rank Turned(Rank r, double phase) const;
  std::vector<PackedArc> Turned(const FractionalPacking& packing, std::span<const PackedArc> arcs,
                                double phase, std::vector<LinkId>& links) const;
  std::vector<bool> UnlikeClasses(const FractionalPacking& packing, const FractionalTree& tree) const;

  size_t members_ = 0;
  std::vector<std::vector<Rank>> classes_;  // ranks of each class, in order of the members
  std::vector<Place> place_;                // by rank; class -1: not a member
  std::vector<std::vector<LinkId>> links_;  // by rank: its links, in the same order for all of a class
  std::vector<Rank> owner_;                 // by link: its rank, if the rank has twins; else id -1
  std::vector<int32_t> turn_;               // by link: position in links_ of its owner
  std::vector<int32_t> orbit_;              // by link: its row in the linear program
  std::vector<double> share_;               // by row: 1 ÷ the number of links in the row
  int64_t num_orbits_ = 0;
};

}  // namespace xccl::forest
