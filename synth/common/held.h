// What a link costs whose message comes over a slower one. In the pipelined model it is held until the slower
// link has delivered (docs/ir.md, Simulation). Alone, it is held for the bytes over the slowest bandwidth so
// far; where messages queue for it, what it is to send has come in the meantime, and it is held less.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

// Does data follow the links, or go against them, because the machine is reversed?
enum class DataFlow : uint8_t { kForwards, kBackwards };

class HeldLinks {
 public:
  // weight: how much of the time counts that a link is held beyond its own: from 0, none, to 1, all.
  HeldLinks(const Topology& topology, DataFlow flow, double weight);

  // The slowest link of a path, as a number from 0 up to num_speeds() - 1, which says: none yet.
  int32_t num_speeds() const { return static_cast<int32_t>(slowest_.size()); }
  bool backwards() const { return flow_ == DataFlow::kBackwards; }

  // How often its own time the link counts at the end of a path of this slowest link.
  double Times(LinkId link, int32_t speed) const;
  // The slowest link of the path once this link is added. A GPU has all of a segment before it sends it on.
  int32_t Then(LinkId link, int32_t speed) const;

  // Times of each link of a path, in order.
  void TimesOf(std::span<const LinkId> path, std::vector<double>& times) const;

 private:
  const Topology& topology_;
  DataFlow flow_;
  double weight_;
  std::vector<int64_t> slowest_;   // bandwidths in ascending order, then one above all
  std::vector<int32_t> speed_of_;  // by link
};

// Is there a switch, CPU or NIC that a slower link enters and a faster one leaves?
bool HasHeldLinks(const Topology& topology);

}  // namespace xccl
