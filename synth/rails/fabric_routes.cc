#include "synth/rails/fabric_routes.h"

#include <algorithm>
#include <utility>

#include "synth/common/cost_model.h"

namespace xccl {

FabricRoutes::FabricRoutes(const Topology& topology, int64_t fastest)
    : topology_(&topology), fastest_(fastest), number_(static_cast<size_t>(topology.num_nodes()), -1) {
  int32_t count = 0;
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    if (!topology.node(NodeId(n)).host && !topology.IsGpu(NodeId(n)))
      number_[static_cast<size_t>(n)] = count++;
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
  const int32_t start = number_[from.index()];
  if (distance[static_cast<size_t>(start)] < 0) return std::nullopt;
  // Nodes of shortest ways in order of their distance, each with the best way to it.
  struct Reached {
    int32_t node = 0;
    double busiest = 0, sum = 0;  // of load ÷ bandwidth, on the way from the start
    std::optional<LinkId> last = {};
    int32_t before = 0;  // index into `reached`
  };
  std::vector<Reached> reached = {{.node = start}};
  std::vector<int32_t> open = {start};  // nodes that have a place in place_
  place_.resize(out_.size(), -1);
  place_[static_cast<size_t>(start)] = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    const Reached at = reached[i];
    for (LinkId l : out_[at.node]) {
      const int32_t next = number_[topology_->link(l).to.index()];
      if (distance[static_cast<size_t>(next)] != distance[static_cast<size_t>(at.node)] - 1) continue;
      const double after = HeldFor(l, load[l.index()] + weight);
      const Reached by{next, std::max(at.busiest, after), at.sum + after, l, static_cast<int32_t>(i)};
      int32_t& place = place_[static_cast<size_t>(next)];
      if (place < 0) {
        place = static_cast<int32_t>(reached.size());
        reached.push_back(by);
        open.push_back(next);
      } else if (Reached& old = reached[static_cast<size_t>(place)];
                 std::pair(by.busiest, by.sum) < std::pair(old.busiest, old.sum)) {
        old = by;
      }
    }
  }
  for (const Reached* at = &reached[static_cast<size_t>(place_[number_[to.index()]])]; at->last;
       at = &reached[static_cast<size_t>(at->before)])
    way.push_back(*at->last);
  std::ranges::reverse(way);
  for (int32_t node : open) place_[static_cast<size_t>(node)] = -1;
  return way;
}

}  // namespace xccl
