#include "synth/rails/fabric_routes.h"

#include <algorithm>

#include "synth/common/cost_model.h"

namespace xccl {

FabricRoutes::FabricRoutes(const Topology& topology)
    : topology_(&topology), number_(static_cast<size_t>(topology.num_nodes()), -1) {
  int32_t count = 0;
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    if (!topology.node(NodeId(n)).host && !topology.IsGpu(NodeId(n))) number_[static_cast<size_t>(n)] = count++;
  const auto links = [&](bool enters) {
    return GroupItems<LinkId>(static_cast<size_t>(count), [&](auto add) {
      for (int32_t l = 0; l < topology.num_links(); ++l) {
        const Link& link = topology.link(LinkId(l));
        const int32_t from = number_[link.from.index()], to = number_[link.to.index()];
        if (from >= 0 && to >= 0) add(enters ? to : from, LinkId(l));
      }
    });
  };
  out_ = links(false);
  in_ = links(true);
}

const std::vector<int32_t>& FabricRoutes::DistancesTo(NodeId to) {
  const auto known = distance_.find(to.value);
  if (known != distance_.end()) return known->second;
  if (static_cast<int64_t>(distance_.size() * out_.size()) > kMostCells) distance_.clear();
  std::vector<int32_t>& distance = distance_[to.value];
  distance.assign(out_.size(), -1);
  std::vector<int32_t> open = {number_[to.index()]};
  distance[static_cast<size_t>(open[0])] = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    for (LinkId l : in_[open[i]]) {
      const int32_t before = number_[topology_->link(l).from.index()];
      if (distance[static_cast<size_t>(before)] >= 0) continue;
      distance[static_cast<size_t>(before)] = distance[static_cast<size_t>(open[i])] + 1;
      open.push_back(before);
    }
  }
  return distance;
}

std::optional<std::vector<LinkId>> FabricRoutes::Way(NodeId from, NodeId to, double weight,
                                                     const std::vector<double>& load) {
  std::vector<LinkId> way;
  if (from == to) return way;
  const std::vector<int32_t>& distance = DistancesTo(to);
  int32_t at = number_[from.index()];
  if (distance[static_cast<size_t>(at)] < 0) return std::nullopt;
  while (at != number_[to.index()]) {
    std::optional<LinkId> best;
    double least = 0;
    for (LinkId l : out_[at]) {
      const int32_t next = number_[topology_->link(l).to.index()];
      if (distance[static_cast<size_t>(next)] != distance[static_cast<size_t>(at)] - 1) continue;
      const double after =
          (load[l.index()] + weight) / static_cast<double>(topology_->link(l).bandwidth_bytes_per_s);
      if (!best || after < least) {
        best = l;
        least = after;
      }
    }
    way.push_back(*best);
    at = number_[topology_->link(*best).to.index()];
  }
  return way;
}

}  // namespace xccl
