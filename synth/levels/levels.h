// The levels of a symmetric machine, such as GPU, host, pod and cluster. Translations of the machine make all
// ranks alike, so that a rank is an element of the group: the one that takes rank 0 there. The ranks within
// some distance of rank 0 generate a subgroup, and the subgroups for growing distances are the levels: a
// host, the hosts of a pod, all pods. A level may be cut into several levels with fewer peers each.
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

// A way from a rank to a peer: the path of rank 0; translations give the paths of the other ranks.
struct Peer {
  int64_t element = 0;        // takes a rank to its peer
  std::vector<LinkId> links;  // from rank 0, through no other GPU
  int64_t latency_ps = 0;     // sum of the links' latencies and overheads
};

// The subgroups H(i) and H(i-1) of two neighbouring levels. The peers take H(i-1) to the other cosets of it
// in H(i): the nearest rank of each coset, the nearest coset first.
struct Level {
  std::vector<Peer> peers;
  int64_t inside = 1;  // the order of H(i-1)
};

// From the inside out. Invariant: the products of one element of each level, a peer's or the identity, are
// all elements, each once.
using Levels = std::vector<Level>;

// The chain of subgroups of a machine, and the shortest paths from rank 0.
class LevelFinder {
 public:
  // Requires: the group is transitive, and outlives the LevelFinder as the topology does. Cost: a search over
  // the links, and near linear in the ranks.
  LevelFinder(const Topology& topology, const SymmetryGroup& group);

  // The orders of the subgroups that end a level, if no level has more than `most_peers` peers where its
  // order allows that.
  std::vector<int64_t> Ends(int64_t most_peers) const;

  // Makes the levels that end with subgroups of the given orders, the last of which is the group's. Peers'
  // paths are shortest ones; of several, the one whose links take the least time for what an allgather sends
  // over them. Errors: kInvalidInput "ENGINE: ..." if a peer is reached only through other GPUs.
  StatusOr<Levels> Make(std::span<const int64_t> ends, std::string_view engine) const;

  // The elements of the subgroup of this order, which is one of Ends(1).
  std::span<const int64_t> Subgroup(int64_t order) const {
    return std::span(elements_).first(static_cast<size_t>(order));
  }

 private:
  using Distance = std::pair<int64_t, int32_t>;  // latency and overhead in ps, then links
  struct Prefix {
    int64_t size = 1;
    int32_t tier = 0;  // the number of different distances, at which the chain grew, before this one
  };

  void FindDistances();
  void FindChain();
  static Distance After(Distance before, const Link& link);
  Distance To(Rank r) const;
  bool Has(int64_t element, int64_t order) const;
  void Append(int64_t element);
  void Add(int64_t element, int32_t tier);
  Peer PathTo(int64_t element, double blocks, std::vector<double>& load) const;

  const Topology& topology_;
  const SymmetryGroup& group_;
  std::vector<Distance> distance_;  // by node, from rank 0 through no other GPU
  std::vector<Rank> nearest_;       // the ranks that are reached, the nearest first
  // A subgroup is a prefix of this list. chain_ has all of them but the trivial one, each of prime index in
  // the next.
  std::vector<int64_t> elements_;
  std::vector<int32_t> place_;  // by element: where the list has it; -1: nowhere
  std::vector<Prefix> chain_;
};

}  // namespace xccl
