// A topology as a graph of ranks: the ranks that are neighbours, the links between them (each parallel cable
// is a hop of its own), and the domains of ranks that are close together. Built once; the engines that `auto`
// tries share it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

// One path from a rank to a neighbour, through no other GPU.
struct Hop {
  Rank from, to;
  int64_t bandwidth_bytes_per_s = 0;  // the narrowest link's
  int64_t latency_ps = 0;             // latencies and overheads along it
  int32_t first_link = 0, num_links = 0;
};
using HopId = TypedId<struct HopTag>;

// Invariants: hops of a rank are sorted by the rank they lead to, the best of parallel ones first.
// Only its memory of distances changes, so that one thread may use it at a time.
class RankGraph {
 public:
  // `topology` must outlive the RankGraph. Cost: one search a rank, and the hops.
  explicit RankGraph(const Topology& topology);
  // The graph of the machine with every link reversed; link ids stay.
  RankGraph Reversed() const;

  const Topology& topology() const { return *topology_; }
  int32_t num_ranks() const { return static_cast<int32_t>(first_.size()) - 1; }
  const Hop& hop(HopId h) const { return hops_[h.index()]; }
  int32_t num_hops() const { return static_cast<int32_t>(hops_.size()); }
  std::span<const LinkId> Links(HopId h) const {
    return std::span(links_).subspan(hop(h).first_link, hop(h).num_links);
  }
  // Ids of the hops that leave r are consecutive.
  HopId FirstOut(Rank r) const { return HopId(first_[r.index()]); }
  HopId EndOut(Rank r) const { return HopId(first_[r.index() + 1]); }
  // The best hop from a to b; absent if they are not neighbours. Logarithmic.
  std::optional<HopId> Find(Rank a, Rank b) const;
  // The number of parallel hops of a pair of ranks. Requires: h is what Find returns.
  int32_t Parallel(HopId h) const;

  // A path for copies over GPUs that are neighbours: a, relays.., b, over the fewest hops, then the widest;
  // empty when b cannot be reached. Different pairs use different ones of equal paths. Cost: the path; and a
  // search over all hops for each source that is new.
  std::vector<Rank> Route(Rank a, Rank b) const;
  // Hops of that path.
  std::optional<int32_t> Distance(Rank a, Rank b) const;

  // Domains are the hosts; on a single host, equal groups of ranks that faster paths join, if there are any.
  // Numbered from 0 in order of their first rank.
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
  std::vector<int32_t> domain_;
  int32_t num_domains_ = 0;
  std::vector<HopId> in_;  // hops in order of the rank that they enter
  std::vector<int32_t> first_in_;
  mutable std::vector<std::vector<int32_t>> distance_;  // by source, on demand; -1: unreachable
  mutable int64_t known_ = 0;                           // sources in it
};

// The graphs of a machine and of the reversed machine, which is made on demand.
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
