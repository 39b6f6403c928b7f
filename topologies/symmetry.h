// Translations of a machine: an abelian group of automorphisms in which no element but the identity keeps a
// GPU in place. It is found, or given by generators, and has the orbits of ranks, nodes and links. The
// group is always correct, and often as large as the machine has ranks (tori, rings, cubes, full meshes,
// switches, clusters with rails, leaf-spine, fat trees). A statement about one rank of an orbit holds,
// translated, for all ranks of the orbit.
//
// An automorphism is a permutation of nodes that keeps kind, multicast and reduce. It takes the links from
// a to b onto those from image(a) to image(b) with equal bandwidth, latency and overhead; equal parallel
// links map to each other in order of id.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

struct Automorphism {
  int32_t order = 1;          // the least number of applications that give the identity
  std::vector<NodeId> image;  // by NodeId
  bool operator==(const Automorphism&) const = default;
};

// Elements are numbered 0..order()-1: element Σ a_i × Π_{j<i} n_j is g_0^a_0 · … · g_k^a_k, where n_i is
// the order of generator i and 0 <= a_i < n_i; 0 is the identity. Invariants: 1. every generator is an
// automorphism of that order; 2. generators commute; 3. no element but the identity keeps a GPU in place.
// Immutable.
class SymmetryGroup {
 public:
  // The group of the identity alone.
  explicit SymmetryGroup(const Topology& topology);
  // Errors: kInvalidInput, "generator 1: ...", naming the invariant that fails. Cost: linear in generators
  // × (nodes + links).
  static StatusOr<SymmetryGroup> Create(const Topology& topology, std::vector<Automorphism> generators);
  // This group with one more generator. Errors: as Create.
  StatusOr<SymmetryGroup> With(const Topology& topology, Automorphism generator) const;

  int64_t order() const { return order_; }
  bool IsTrivial() const { return order_ == 1; }
  bool IsTransitive() const { return num_rank_orbits() == 1; }  // all ranks form one orbit
  const std::vector<Automorphism>& generators() const { return generators_; }

  // The image of a node, rank or link under element e. Cost: the number of generators.
  NodeId Image(int64_t e, NodeId n) const { return NodeId(Apply(e, on_nodes_, n.value)); }
  Rank Image(int64_t e, Rank r) const {
    return Rank(rank_of_node_[Apply(e, on_nodes_, node_of_rank_[r.index()])]);
  }
  LinkId Image(int64_t e, LinkId l) const { return LinkId(Apply(e, on_links_, l.value)); }
  int64_t Compose(int64_t e, int64_t f) const;
  int64_t Inverse(int64_t e) const;

  // Rank orbits are numbered by their lowest rank, which represents them; each has order() ranks.
  int32_t num_rank_orbits() const { return static_cast<int32_t>(representatives_.size()); }
  int32_t OrbitOf(Rank r) const { return rank_orbit_[r.index()]; }
  Rank Representative(int32_t orbit) const { return representatives_[static_cast<size_t>(orbit)]; }
  // The one element that takes r's representative to r.
  int64_t ElementOf(Rank r) const { return element_of_rank_[r.index()]; }

  // Link orbits are numbered by their lowest link, which represents them.
  int32_t num_link_orbits() const { return static_cast<int32_t>(link_orbit_size_.size()); }
  int32_t OrbitOf(LinkId l) const { return link_orbit_[l.index()]; }
  LinkId LinkRepresentative(int32_t orbit) const { return link_representatives_[static_cast<size_t>(orbit)]; }
  // The number of links in the orbit: order() unless some element but the identity keeps a link of it in
  // place.
  int64_t LinkOrbitSize(int32_t orbit) const { return link_orbit_size_[static_cast<size_t>(orbit)]; }
  // The number of translates of a link that fall on each link of its orbit.
  double LinkShare(int32_t orbit) const {
    return static_cast<double>(order_) / static_cast<double>(LinkOrbitSize(orbit));
  }
  bool IsFreeOn(LinkId l) const { return LinkOrbitSize(OrbitOf(l)) == order_; }

  int32_t num_node_orbits() const { return static_cast<int32_t>(node_orbit_size_.size()); }
  int32_t OrbitOf(NodeId n) const { return node_orbit_[n.index()]; }

 private:
  // A permutation as cycles: item x is cycle[place[x].first + place[x].offset].
  struct Cycles {
    struct Place {
      int32_t first = 0, offset = 0, length = 1;
    };
    std::vector<int32_t> cycle;
    std::vector<Place> place;
  };
  static Cycles CyclesOf(std::span<const int32_t> image);
  int32_t Apply(int64_t e, const std::vector<Cycles>& generators, int32_t x) const;
  Status AddGenerator(const Topology& topology, Automorphism generator);
  // Numbers the orbits of nodes, links and ranks. Errors: the group is not free.
  Status FindOrbits();

  int64_t order_ = 1;
  size_t num_links_ = 0;
  std::vector<Automorphism> generators_;
  std::vector<Cycles> on_nodes_, on_links_;  // by generator
  std::vector<int32_t> node_of_rank_, rank_of_node_;
  std::vector<int32_t> rank_orbit_, node_orbit_, link_orbit_;
  std::vector<Rank> representatives_;
  std::vector<int64_t> element_of_rank_, node_orbit_size_, link_orbit_size_;
  std::vector<LinkId> link_representatives_;
};

// The image of every link under a permutation of the nodes; equal parallel links map in order of id.
// Errors: kInvalidInput if it is no automorphism: "takes link 0->1 to gpu 3 -> gpu 2, which have no such
// link".
StatusOr<std::vector<LinkId>> LinkImages(const Topology& topology, std::span<const NodeId> image);

// Finds translations, one generator at a time: each is extended over the machine from the image of rank 0.
// A limit on work keeps the whole near linear in nodes + links; the group is smaller where a search fails
// or reaches the limit. Deterministic. Method: symmetry_find.cc.
SymmetryGroup FindTranslations(const Topology& topology);
// With fewer ranks, finding translations costs bounds more than it saves.
inline constexpr int32_t kManyRanks = 64;

}  // namespace xccl
