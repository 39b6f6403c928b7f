// The machine as a receiver sees it: the hops that end at each rank, those over one last link being one port,
// and how far it is from rank to rank. In: a RankGraph (turned round for reductions) and the slowest hop that
// is of use; out: flat tables.
#pragma once

#include <cstdint>
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
};

class BfbNetwork {
 public:
  // Hops of more than `most_latency_ps` are left out. `graph` must outlive the result. Linear in the hops.
  BfbNetwork(const RankGraph& graph, int64_t most_latency_ps);

  const RankGraph& graph() const { return *graph_; }
  int32_t num_ranks() const { return static_cast<int32_t>(in_.size()); }
  // Sorted by the rank that they come from.
  std::span<const InHop> In(Rank r) const { return in_[r.index()]; }
  // By port: bytes per second.
  std::span<const double> PortSpeeds(Rank r) const { return port_speed_[r.index()]; }

  // Least hops from `start` to every rank, or, backwards, from every rank to `start`; -1: unreachable. Linear
  // in the hops; stops when all are found.
  std::vector<int32_t> Distances(Rank start, bool backwards) const;

 private:
  const RankGraph* graph_;
  int64_t most_latency_ps_;
  // By rank.
  Grouped<InHop> in_;
  Grouped<double> port_speed_;
};

// The least latency with which hops join `members` all to all; the longest of all where none does.
int64_t LatencyThatJoins(const RankGraph& graph, std::span<const Rank> members);

}  // namespace xccl
