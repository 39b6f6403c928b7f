// The levels of a symmetric machine, such as GPU, host, pod and cluster. Translations of the machine make its
// ranks alike, or leave a few kinds of ranks, as many of each. A rank is then a kind and an element of the
// group: the one that takes the representative of the kind there. The ranks within some distance of rank 0
// that are of its kind generate a subgroup, and the subgroups for growing distances are the levels: a host,
// the hosts of a pod, all pods. One more level joins the kinds: the routers of a dragonfly's group. A level
// may be cut into several levels with fewer peers each, and neighbouring levels may be joined to one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// A way from the representative of a kind to a peer; translations give the ways of the other ranks.
struct PeerPath {
  int64_t element = 0;        // takes the representative of the peer's kind to the peer
  std::vector<LinkId> links;  // through no other GPU
  int64_t latency_ps = 0;     // sum of the links' latencies and overheads
};

// One peer of every rank. All ranks have the same peer at a time, so that each is the peer of one rank.
struct Peer {
  int32_t turn = 0;            // a rank of kind k has a peer of kind k + turn, modulo the number of kinds
  std::vector<PeerPath> from;  // by kind
};

// A level of ranks of one kind goes from a subgroup H(i-1) to the next one, H(i): its peers take H(i-1) to
// the other cosets of it in H(i), the element that is nearest to rank 0 of each coset, the farthest coset
// first. The level of kinds has a peer of each other kind, the nearest one. A level that joins kinds and
// cosets has a peer of each kind in each coset: what the elements of the cosets make of the nearest one.
struct Level {
  std::vector<Peer> peers;
  int64_t inside = 1;        // the ranks that the levels inside this one join
  bool joins_kinds = false;  // as well as cosets
  // The ways from rank 0 through one switch to all other ranks of the innermost level, each a tree of links.
  // Where there are some, the switch copies what a rank sends to all its peers at once.
  std::vector<std::vector<LinkId>> trees = {};

  int32_t rounds() const { return trees.empty() ? static_cast<int32_t>(peers.size()) : 1; }
};

// From the inside out. Invariant: from every rank, the products of one peer of each level, or none, are all
// ranks, each once.
using Levels = std::vector<Level>;

// The ranks that a level and those inside it join: a subgroup, of one kind or of all.
struct LevelEnd {
  int64_t order = 1;  // of the subgroup
  bool has_kinds = false;
  bool operator==(const LevelEnd&) const = default;
};
// The ends of levels that end with subgroups of the given orders, and of the level of kinds outside the first
// `inside_kinds` of them. Where ranks are of one kind there is no such level.
std::vector<LevelEnd> EndsWithKinds(std::span<const int64_t> orders, size_t inside_kinds, int32_t kinds);

// The chain of subgroups of a machine, and the shortest paths from the representatives of the kinds.
class LevelFinder {
 public:
  // Requires: the group outlives the LevelFinder, as the topology does. Cost: a search over the links, and
  // near linear in the ranks.
  LevelFinder(const Topology& topology, const SymmetryGroup& group);

  // The orders of the subgroups that end a level, if no level has more than `most_peers` peers where its
  // order allows that.
  std::vector<int64_t> Ends(int64_t most_peers) const;

  // Makes the levels with these ends, the last of which joins all ranks. Peers' paths are shortest ones; of
  // several, the one whose links take the least time for what an allgather sends over them. Errors:
  // kInvalidInput "ENGINE: ..." if a peer is reached only through other GPUs. Cost: a search over the links
  // for each kind, and the paths.
  StatusOr<Levels> Make(std::span<const LevelEnd> ends, std::string_view engine) const;
  // Makes those of EndsWithKinds.
  StatusOr<Levels> Make(std::span<const int64_t> orders, std::string_view engine,
                        size_t inside_kinds = 0) const;

  // On levels that join kinds and cosets, leads paths around links that are crowded, over links that are less
  // so; a path may become longer. Returns whether there is such a level. Cost: up to 64 times that of Make.
  bool LeadAroundCrowds(Levels& levels) const;

  // Returns the trees of links from rank 0 through one switch to all other ranks of the subgroup of this
  // order: the switch multicasts or, on a reversed machine, `sums`, reduces. Parallel switches and cables
  // have a tree each. Cost: linear in the links of rank 0 and of those switches.
  std::vector<std::vector<LinkId>> SwitchTrees(int64_t order, bool sums) const;

  // The elements of the subgroup of this order, which is one of Ends(1).
  std::span<const int64_t> Subgroup(int64_t order) const {
    return std::span(elements_).first(static_cast<size_t>(order));
  }
  // Returns whether that subgroup has the element.
  bool Has(int64_t element, int64_t order) const {
    const int32_t place = place_[static_cast<size_t>(element)];
    return place >= 0 && place < order;
  }

 private:
  using Distance = std::pair<int64_t, int32_t>;  // the lengths of links, then their number
  using Distances = std::vector<Distance>;       // by node, from a rank through no other GPU
  struct Prefix {
    int64_t size = 1;
    int32_t tier = 0;  // the number of different distances, at which the chain grew, before this one
  };

  Distances DistancesFrom(Rank r, const std::vector<int64_t>& lengths) const;
  void FindChain();
  void Append(int64_t element);
  void Add(int64_t element, int32_t tier);
  std::vector<Peer> PeersBetween(int64_t inside, int64_t end) const;
  std::vector<Peer> PeersOfAllKinds(int64_t inside, int64_t end) const;
  std::vector<Rank> NearestOfKinds(const Distances& distances) const;
  class PathSearch;
  Status FindPaths(Levels& levels, std::string_view engine) const;
  void LeadAroundCrowds(Level& level) const;
  // The time that so many blocks of one byte, and their translates, take on a link.
  double SecondsOf(LinkId link, double blocks) const;
  Status Unreached(std::string_view engine) const;

  const Topology& topology_;
  const SymmetryGroup& group_;
  std::vector<int64_t> latency_ps_;  // by orbit of links, with the overhead
  Distances distance_;               // from rank 0
  std::vector<Rank> nearest_;        // the ranks of rank 0's kind that are reached, the nearest first
  // A subgroup is a prefix of this list. chain_ has all of them but the trivial one, each of prime index in
  // the next.
  std::vector<int64_t> elements_;
  std::vector<int32_t> place_;  // by element: where the list has it; -1: nowhere
  std::vector<Prefix> chain_;
};

}  // namespace xccl
