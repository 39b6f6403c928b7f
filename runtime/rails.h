// Which network devices of its hosts a connection goes over, as the plan has it: the topology's NICs on its
// path, numbered within their hosts in the order of the topology.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/program.h"
#include "runtime/transport/wiring.h"
#include "topologies/topology.h"

namespace xccl {

// Finds the devices of paths between ranks.
class RailFinder {
 public:
  explicit RailFinder(const Topology& topology);  // outlives this
  // A path that has no NIC of a host gets that host's first NIC.
  Rails Of(Rank src, Rank dst, std::span<const LinkId> path) const;

 private:
  const Topology& topology_;
  const std::vector<int32_t> numbers_;  // by node: its number among the NICs of its host, or -1
};
// By connection of the program.
std::vector<Rails> RailsOf(const Program& program, const Topology& topology);
// Sets the rails in the wiring, which has all connections of the program. Where programs disagree, the last
// one set wins.
void SetRails(const Program& program, std::span<const Rails> rails, Wiring& wiring);

}  // namespace xccl
