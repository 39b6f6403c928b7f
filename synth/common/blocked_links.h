// Cut-through blocking in the pipelined time model. A message that comes over a slow link occupies the faster
// links that follow on its path until the slow link has delivered the message (docs/ir.md, Simulation). The
// faster links are called blocked, or held. A link that carries one message alone is occupied for the bytes ÷
// the slowest bandwidth of the path so far. A message in a queue occupies the link for less time, because
// part of the message arrives before its turn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

// The direction of data: along the links or, on the reversed machine, against the links.
enum class Direction : uint8_t { kForwards, kBackwards };

class BlockedLinks {
 public:
  // `weight` is the share of the additional time that counts, from 0 (none) to 1 (all).
  BlockedLinks(const Topology& topology, Direction direction, double weight);

  // The number of speeds. A speed is an index that stands for the slowest link of a path: 0 for the lowest
  // bandwidth of the machine, num_speeds() - 1 for a path without links.
  int32_t num_speeds() const { return static_cast<int32_t>(slowest_.size()); }
  bool backwards() const { return direction_ == Direction::kBackwards; }

  // Returns the time for which the link is occupied ÷ the time that its own bandwidth takes. `speed` is the
  // speed of the path before the link.
  double BlockingFactor(LinkId link, int32_t speed) const;
  // Returns the speed of the path once `link` is added. At a GPU the speed starts anew, because a GPU
  // receives a whole segment before it sends the segment on.
  int32_t NextBottleneck(LinkId link, int32_t speed) const;

  // Sets `factors` to the blocking factors of all links of a path, in order.
  void BlockingFactors(std::span<const LinkId> path, std::vector<double>& factors) const;

 private:
  const Topology& topology_;
  Direction direction_;
  double weight_;
  std::vector<int64_t> slowest_;   // by speed: bandwidths in ascending order, then the largest int64_t
  std::vector<int32_t> speed_of_;  // by link: the speed of the link alone
};

// Returns whether there is a switch, CPU or NIC that a slower link enters and a faster link leaves.
bool HasBlockedLinks(const Topology& topology);

}  // namespace xccl
