// Shortest ways through the fabric, the nodes that belong to no host. Equally short ways share the load.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/graph/grouped.h"
#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

class FabricRoutes {
 public:
  // Messages come and go over other links at no more than `fastest` bytes per second, and hold a faster link
  // as long as one of that bandwidth (docs/ir.md, section 5). Requires that `topology` outlives the
  // FabricRoutes.
  FabricRoutes(const Topology& topology, int64_t fastest);
  // Returns the links of a way with the fewest hops, or nullopt if there is none. Of several, takes the one
  // whose busiest link is least busy after `weight` is added to `load`, in proportion to its bandwidth. Cost:
  // a search over the fabric for each destination, and the links of the nodes on shortest ways.
  std::optional<std::vector<LinkId>> Way(NodeId from, NodeId to, double weight,
                                         const std::vector<double>& load);
  // Returns the time for which a link of the fabric is held, in loads per byte per second; 0 for other links.
  double HeldFor(LinkId link, double load) const {
    const Link& l = topology_->link(link);
    if (number_[l.from.index()] < 0 || number_[l.to.index()] < 0) return 0;
    return load / static_cast<double>(std::min(l.bandwidth_bytes_per_s, fastest_));
  }

 private:
  const std::vector<int32_t>& DistancesTo(NodeId to);

  const Topology* topology_;
  int64_t fastest_;
  std::vector<int32_t> number_;                                 // by node: its number in the fabric, or -1
  Grouped<LinkId> out_, in_;                                    // by number: links inside the fabric
  std::vector<int32_t> place_;                                  // scratch of Way, by number; -1 between calls
  std::unordered_map<int32_t, std::vector<int32_t>> distance_;  // by destination, then number; -1: no way
};

}  // namespace xccl
