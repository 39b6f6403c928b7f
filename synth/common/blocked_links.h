// Cut-through blocking: in the pipelined model a message that comes over a slow link occupies the faster
// links after it until the slow link has delivered (docs/ir.md, Simulation). A link that carries one message
// alone is blocked for the bytes over the slowest bandwidth of the path so far. A link that messages queue
// for is blocked for less, since part of the message has arrived before its turn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

// Does data follow the links, or, on the reversed machine, go against them?
enum class Direction : uint8_t { kForwards, kBackwards };

class BlockedLinks {
 public:
  // weight: the share of the additional time that counts, from 0, none, to 1, all.
  BlockedLinks(const Topology& topology, Direction direction, double weight);

  // The slowest link of a path, as a number from 0 up to num_speeds() - 1, which says: none yet.
  int32_t num_speeds() const { return static_cast<int32_t>(slowest_.size()); }
  bool backwards() const { return direction_ == Direction::kBackwards; }

  // Time for which the link is occupied ÷ its own time, after a path with this slowest link.
  double BlockingFactor(LinkId link, int32_t speed) const;
  // The slowest link of the path once `link` is added. It starts anew at a GPU, which has all of a segment
  // before it sends the segment on.
  int32_t NextBottleneck(LinkId link, int32_t speed) const;

  // The factors of all links of a path, in order.
  void BlockingFactors(std::span<const LinkId> path, std::vector<double>& factors) const;

 private:
  const Topology& topology_;
  Direction direction_;
  double weight_;
  std::vector<int64_t> slowest_;   // bandwidths in ascending order, then one above all
  std::vector<int32_t> speed_of_;  // by link
};

// Is there a switch, CPU or NIC that a slower link enters and a faster one leaves?
bool HasBlockedLinks(const Topology& topology);

}  // namespace xccl
