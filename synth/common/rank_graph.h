// A topology as a graph of ranks. It holds a hop for each pair of neighbouring ranks, and another hop for
// each cable parallel to a direct link. It also holds the domains of ranks that are close together. The graph
// is built once, and the engines that `auto` tries share it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

// A path that passes no other GPU, from a rank to a neighbour.
struct Hop {
  Rank from, to;
  int64_t bandwidth_bytes_per_s = 0;  // of the slowest link
  int64_t latency_ps = 0;             // sum of the links' latencies and overheads
  int32_t first_link = 0, num_links = 0;
};
using HopId = TypedId<struct HopTag>;

// Invariant: the hops that leave a rank are sorted by destination, the best of parallel hops first. Two
// threads may not use a RankGraph at the same time, because const functions fill a cache of distances.
class RankGraph {
 public:
  // Requires that `topology` outlives the RankGraph. Cost: one search per rank, plus the number of hops.
  explicit RankGraph(const Topology& topology);
  // Returns the graph of the machine with every link reversed. Link ids stay the same.
  RankGraph Reversed() const;

  const Topology& topology() const { return *topology_; }
  int32_t num_ranks() const { return static_cast<int32_t>(first_.size()) - 1; }
  const Hop& hop(HopId h) const { return hops_[h.index()]; }
  int32_t num_hops() const { return static_cast<int32_t>(hops_.size()); }
  std::span<const LinkId> Links(HopId h) const {
    return std::span(links_).subspan(hop(h).first_link, hop(h).num_links);
  }
  // The hops that leave r have the consecutive ids from FirstOut(r) up to, but not including, EndOut(r).
  HopId FirstOut(Rank r) const { return HopId(first_[r.index()]); }
  HopId EndOut(Rank r) const { return HopId(first_[r.index() + 1]); }
  // Returns the best hop from a to b, or nullopt if a and b are not neighbours. Cost: constant if a has one
  // hop to every other rank, otherwise logarithmic.
  std::optional<HopId> Find(Rank a, Rank b) const;
  // Returns whether every rank is a neighbour of each other rank.
  bool JoinsAll() const { return joins_all_; }
  // Returns the number of parallel hops between the two ranks of h. Requires that h comes from Find.
  int32_t Parallel(HopId h) const;

  // Returns the ranks on a path for copies from a to b over relays: a, the relays, b. The path has the fewest
  // hops; of several candidates for a hop, the widest are preferred. Different pairs of ranks spread over
  // equal paths. Empty if b cannot be reached. Cost: the length of the path, and a search over all hops for
  // each new source.
  std::vector<Rank> Route(Rank a, Rank b) const;
  // Returns the number of hops of Route(a, b), or nullopt if b cannot be reached.
  std::optional<int32_t> Distance(Rank a, Rank b) const;

  // Domains are the hosts. On a single host, domains are the groups of ranks that the widest hops of more
  // than one link join, if all groups have the same size, at least 2; otherwise the host is one domain.
  // Domains are numbered from 0 in the order of their first rank.
  int32_t Domain(Rank r) const { return domain_[r.index()]; }
  int32_t num_domains() const { return num_domains_; }

 private:
  RankGraph() = default;
  void Index(std::vector<Hop> hops, const std::vector<LinkId>& links);
  void FindDomains();
  const std::vector<int32_t>& DistancesFrom(Rank a) const;

  const Topology* topology_ = nullptr;
  std::vector<Hop> hops_;
  std::vector<LinkId> links_;
  std::vector<int32_t> first_;
  bool joins_all_ = false;
  std::vector<int32_t> domain_;
  int32_t num_domains_ = 0;
  std::vector<HopId> in_;  // hops, sorted by the rank that they enter
  std::vector<int32_t> first_in_;
  mutable std::vector<std::vector<int32_t>> distance_;  // by source: hops to each rank; -1: unreachable
  mutable int64_t known_ = 0;                           // number of sources in distance_
};

// Returns the most hops that a RankGraph of the machine can have, without building it. Counts the direct
// links, and the pairs of ranks that the same switches, NICs and CPUs join. The graph has fewer hops if some
// of these pairs have no path, are counted twice, or are a rank and itself. Nearly linear in the machine.
int64_t MostHops(const Topology& topology);
// Return the memory in bytes, and the work in moves (cost_model.h), of a RankGraph with `hops` hops.
int64_t BytesOfHops(int64_t hops);
int64_t WorkOfHops(int64_t hops);

// The graphs of a machine and of the reversed machine. The reversed graph is made on demand.
class RankGraphs {
 public:
  explicit RankGraphs(const Topology& topology) : forward_(topology) {}
  const RankGraph& forward() const { return forward_; }
  const RankGraph& reversed() {
    if (!reversed_) reversed_ = std::make_unique<RankGraph>(forward_.Reversed());
    return *reversed_;
  }

 private:
  RankGraph forward_;
  std::unique_ptr<RankGraph> reversed_;
};

}  // namespace xccl
