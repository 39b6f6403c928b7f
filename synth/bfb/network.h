// The machine as a receiver sees it: the hops that end at each rank, those over one last link being one port,
// and how far it is from rank to rank. In: a RankGraph (turned round for reductions) and the slowest hop that
// is of use; out: flat tables.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/graph/grouped.h"
#include "base/ids.h"
#include "synth/common/rank_graph.h"

namespace xccl {

struct InHop {
  Rank from;
  HopId hop;
  int32_t port = 0;  // of the receiver, from 0
  int32_t cost = 1;  // of the distance; >= 1
};

enum class BfbMetric { kHops, kLatency };

class BfbNetwork {
 public:
  // Hops of more than `most_latency_ps` are left out. `graph` must outlive the result. Linear in the hops.
  BfbNetwork(const RankGraph& graph, int64_t most_latency_ps, BfbMetric metric);

  const RankGraph& graph() const { return *graph_; }
  int32_t num_ranks() const { return static_cast<int32_t>(in_.size()); }
  // Sorted by the rank that they come from.
  std::span<const InHop> In(Rank r) const { return in_[r.index()]; }
  // By port: bytes per second.
  std::span<const double> PortSpeeds(Rank r) const { return port_speed_[r.index()]; }
  bool HopsCostOne() const { return hops_cost_one_; }

  // Least cost to (from) `rank` of all ranks, by rank; -1: unreachable. Linear in the hops where each costs
  // 1; stops when all are found.
  std::vector<int32_t> DistancesTo(Rank rank) const;
  std::vector<int32_t> DistancesFrom(Rank rank) const;

 private:
  std::vector<int32_t> Search(Rank start, bool backwards) const;

  const RankGraph* graph_;
  struct Edge {
    int32_t to, cost;
  };
  // By rank.
  Grouped<InHop> in_;
  Grouped<Edge> out_;
  Grouped<double> port_speed_;
  bool hops_cost_one_ = true;
};

// Latencies of hops, ascending, each once, beginning with the least that joins `members` all to all.
std::vector<int64_t> LatencyClasses(const RankGraph& graph, std::span<const Rank> members);

}  // namespace xccl
