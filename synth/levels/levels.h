// Finds the levels of a symmetric machine, such as GPU, host, pod and cluster. Ranks that translations take
// to each other (an orbit, topologies/symmetry.h) are of one *kind*; all kinds have equally many ranks. A
// rank is given by its kind and an element, the translation that takes the kind's representative to the rank.
// Ranks of rank 0's kind up to some distance from it generate a subgroup of the translations. The subgroups
// for growing distances are the levels: a host, a pod, all pods. The translates of a level's ranks are its
// cosets, such as the hosts of a pod; the next level joins them. One more level joins the kinds, such as the
// routers of a dragonfly's group. A level may be cut into several levels with fewer peers each, and
// neighbouring levels may be joined.
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

// A path from the representative of a kind to a peer. Translations give the paths of the kind's other ranks.
struct PeerPath {
  int64_t element = 0;        // takes the representative of the peer's kind to the peer
  std::vector<LinkId> links;  // pass no other GPU
  int64_t latency_ps = 0;     // sum of the links' latencies and overheads
};

// A peer for each rank, to which all ranks send in one round. No two ranks have the same peer.
struct Peer {
  int32_t turn = 0;            // a rank of kind k has a peer of kind (k + turn) % the number of kinds
  std::vector<PeerPath> from;  // by kind
};

// A level of ranks of one kind has a peer in each other coset. Seen from rank 0, it is the nearest rank of
// the coset. Peers in the farthest cosets come first. The level of kinds has a peer of each other kind: the
// nearest rank of that kind. A level that joins kinds and cosets has a peer of each kind in each coset: the
// translate there of the nearest rank of that kind.
struct Level {
  std::vector<Peer> peers;
  int64_t inside = 1;        // number of ranks that the levels inside this one join
  bool joins_kinds = false;  // the level joins cosets and kinds
  // If not empty, a switch copies what a rank sends to all its peers at once. Each tree has the links from
  // rank 0 through one switch to all other ranks of the level, which is the innermost one.
  std::vector<std::vector<LinkId>> trees = {};

  int32_t rounds() const { return trees.empty() ? static_cast<int32_t>(peers.size()) : 1; }
};

// Levels, the innermost first. Invariant: from any rank, take at each level a step to one peer, or none.
// These walks reach every rank, each exactly once.
using Levels = std::vector<Level>;

// The ranks that a level and the levels inside it join: those of a subgroup, of one kind or of all kinds.
struct LevelEnd {
  int64_t order = 1;  // of the subgroup
  bool has_kinds = false;
  bool operator==(const LevelEnd&) const = default;
};
// Returns the ends of levels. A level ends with each subgroup of the given orders; the level of kinds follows
// the first `inside_kinds` of these levels. There is no level of kinds if all ranks are of one kind.
std::vector<LevelEnd> EndsWithKinds(std::span<const int64_t> orders, size_t inside_kinds, int32_t kinds);

// Finds the chain of subgroups of a machine, and the shortest paths from the representatives of the kinds.
class LevelFinder {
 public:
  // Requires: the group and the topology outlive the LevelFinder. Cost: a search over the links, and near
  // linear in the ranks.
  LevelFinder(const Topology& topology, const SymmetryGroup& group);

  // Returns the orders of the subgroups that end a level. No level has more than `most_peers` peers, unless
  // the next subgroup of the chain needs more.
  std::vector<int64_t> Ends(int64_t most_peers) const;

  // Makes the levels with these ends, the last of which joins all ranks. Peers' paths are shortest paths; of
  // several, a path is taken whose links an allgather loads least. Errors: kInvalidInput "ENGINE: ..." if a
  // peer is reached only through other GPUs. Cost: a search over the links for each kind, and the paths.
  StatusOr<Levels> Make(std::span<const LevelEnd> ends, std::string_view engine) const;
  // Makes the levels with the ends that EndsWithKinds returns.
  StatusOr<Levels> Make(std::span<const int64_t> orders, std::string_view engine,
                        size_t inside_kinds = 0) const;

  // On levels that join kinds and cosets, leads paths around crowded links, over less crowded ones. A path
  // may become longer. Returns whether there is such a level. Cost: up to 64 times that of Make.
  bool LeadAroundCrowds(Levels& levels) const;

  // Returns the trees of links from rank 0 through one switch to all other ranks of the subgroup of this
  // order. The switch multicasts; with `sums`, it reduces, and the machine is the reversed one. Parallel
  // switches and cables have a tree each. Cost: linear in the links of rank 0 and of its switches.
  std::vector<std::vector<LinkId>> SwitchTrees(int64_t order, bool sums) const;

  // Returns the elements of the subgroup of this order. Requires: the order is 1 or one of Ends(1).
  std::span<const int64_t> Subgroup(int64_t order) const {
    return std::span(elements_).first(static_cast<size_t>(order));
  }
  // Returns whether the subgroup of this order has the element.
  bool Has(int64_t element, int64_t order) const {
    const int32_t place = place_[static_cast<size_t>(element)];
    return place >= 0 && place < order;
  }

 private:
  using Distance = std::pair<int64_t, int32_t>;  // sum of the links' lengths, then their number
  using Distances = std::vector<Distance>;       // by node; paths pass no other GPU
  struct Prefix {
    int64_t size = 1;
    int32_t tier = 0;  // number of smaller distances at which the chain grew
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
  // Returns the seconds that a link takes for this many blocks of one byte, and for their translates.
  double SecondsOf(LinkId link, double blocks) const;
  Status Unreached(std::string_view engine) const;

  const Topology& topology_;
  const SymmetryGroup& group_;
  std::vector<int64_t> latency_ps_;  // by orbit of links, with the overhead
  Distances distance_;               // from rank 0
  std::vector<Rank> nearest_;        // ranks of rank 0's kind that it reaches, the nearest first
  // Every subgroup of the chain is a prefix of elements_. chain_ has the sizes of these prefixes, except 1.
  // The index of each subgroup in the next one is prime.
  std::vector<int64_t> elements_;
  std::vector<int32_t> place_;  // by element: its index in elements_; -1: it is not there
  std::vector<Prefix> chain_;
};

}  // namespace xccl
