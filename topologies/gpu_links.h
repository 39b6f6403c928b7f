// Which paths between GPUs keep the order of the bytes of a store, as protocol LL128 needs: those over NVLink
// and the like (xGMI, C2C). A topology has no kinds of links. PCIe and networks are known by what they join:
// PCIe switches have a CPU or a NIC above or below them, and switches of a network have NICs.
#pragma once

#include <span>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

class GpuLinks {
 public:
  // Refers to the topology. Cost: linear.
  explicit GpuLinks(const Topology& topology);

  // True if all links are between GPUs, or between GPUs and switches from which no CPU and no NIC can be
  // reached through switches alone.
  bool Have(std::span<const LinkId> path) const;

 private:
  const Topology& topology_;
  std::vector<bool> other_;  // by node: CPUs, NICs and what switches join to them
};

}  // namespace xccl
