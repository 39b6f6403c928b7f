// The machine as its receivers see it: the hops into each rank, the ports of a rank (hops into a rank over
// one last link are one port), and the distances between ranks. In: a RankGraph (the reversed machine's for
// sums) and the latency above which hops are left out. Out: flat tables.
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
  int32_t port = 0;  // number among the receiver's ports
};

class BfbNetwork {
 public:
  // Leaves out hops of more than `most_latency_ps`. `graph` must outlive the result. Linear in the hops.
  BfbNetwork(const RankGraph& graph, int64_t most_latency_ps);

  const RankGraph& graph() const { return *graph_; }
  int32_t num_ranks() const { return static_cast<int32_t>(in_.size()); }
  // Sorted by the rank that they come from.
  std::span<const InHop> In(Rank r) const { return in_[r.index()]; }
  // By port: bytes per second.
  std::span<const double> PortSpeeds(Rank r) const { return port_speed_[r.index()]; }

  // The fewest hops from `start` to every rank, or, backwards, from every rank to `start`; -1: unreachable.
  // Linear in the hops; stops once all ranks are found.
  std::vector<int32_t> Distances(Rank start, bool backwards) const;

 private:
  const RankGraph* graph_;
  int64_t most_latency_ps_;
  // By rank.
  Grouped<InHop> in_;
  Grouped<double> port_speed_;
};

// The least latency such that hops of at most this latency lead from every member to every other; the largest
// latency of any hop where the members are not joined at all.
int64_t LatencyThatJoins(const RankGraph& graph, std::span<const Rank> members);

}  // namespace xccl
