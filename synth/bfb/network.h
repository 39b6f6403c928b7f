// The machine as its receivers see it: the hops into each rank, the ports of each rank, and the distances
// between ranks. A hop is a path from one rank to another through no other GPU (synth/common/rank_graph.h).
// All hops into a rank that end with the same link form one port. Input: a RankGraph, which for sums is that
// of the reversed machine, and the largest latency of a hop.
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
  // Leaves out hops slower than `most_latency_ps`. `graph` must outlive the network. Linear in the hops.
  BfbNetwork(const RankGraph& graph, int64_t most_latency_ps);

  const RankGraph& graph() const { return *graph_; }
  int32_t num_ranks() const { return static_cast<int32_t>(in_.size()); }
  // Returns the hops into `r`, sorted by the rank that they come from.
  std::span<const InHop> In(Rank r) const { return in_[r.index()]; }
  // Returns the speed of each port of `r` in bytes per second: the bandwidth of its fastest hop.
  std::span<const double> PortSpeeds(Rank r) const { return port_speed_[r.index()]; }

  // Returns the fewest hops from `start` to every rank or, if `backwards`, from every rank to `start`; -1 if
  // there is no path. Linear in the hops.
  std::vector<int32_t> Distances(Rank start, bool backwards) const;

 private:
  const RankGraph* graph_;
  int64_t most_latency_ps_;
  // Both tables are grouped by rank.
  Grouped<InHop> in_;
  Grouped<double> port_speed_;
};

// Returns the least latency for which the hops of at most this latency lead from every member to every other
// member. Returns the largest latency of any hop if all hops together do not join the members.
int64_t LatencyThatJoins(const RankGraph& graph, std::span<const Rank> members);

}  // namespace xccl
