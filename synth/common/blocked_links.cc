// A speed is an index into the sorted list of all bandwidths. The state of a path is the speed of its slowest
// link, so a search for paths needs one label for each (node, speed).
#include "synth/common/blocked_links.h"

#include <algorithm>
#include <limits>

namespace xccl {

BlockedLinks::BlockedLinks(const Topology& topology, Direction direction, double weight)
    : topology_(topology), direction_(direction), weight_(weight) {
  speed_of_.assign(static_cast<size_t>(topology.num_links()), 0);
  if (weight > 0) {
    for (const Link& link : topology.spec().links) slowest_.push_back(link.bandwidth_bytes_per_s);
    std::ranges::sort(slowest_);
    slowest_.erase(std::unique(slowest_.begin(), slowest_.end()), slowest_.end());
    for (size_t l = 0; l < speed_of_.size(); ++l)
      speed_of_[l] = static_cast<int32_t>(
          std::ranges::lower_bound(slowest_, topology.spec().links[l].bandwidth_bytes_per_s) -
          slowest_.begin());
  }
  slowest_.push_back(std::numeric_limits<int64_t>::max());
}

double BlockedLinks::BlockingFactor(LinkId link, int32_t speed) const {
  if (weight_ == 0 || speed >= speed_of_[link.index()]) return 1;
  const double times = static_cast<double>(topology_.link(link).bandwidth_bytes_per_s) /
                       static_cast<double>(slowest_[static_cast<size_t>(speed)]);
  return 1 + weight_ * (times - 1);
}

int32_t BlockedLinks::NextBottleneck(LinkId link, int32_t speed) const {
  if (weight_ == 0) return 0;
  const Link& at = topology_.link(link);
  if (topology_.IsGpu(backwards() ? at.from : at.to)) return num_speeds() - 1;
  return std::min(speed, speed_of_[link.index()]);
}

void BlockedLinks::BlockingFactors(std::span<const LinkId> path, std::vector<double>& factors) const {
  factors.assign(path.size(), 1.0);
  if (weight_ == 0) return;
  int32_t speed = num_speeds() - 1;
  for (size_t i = 0; i < path.size(); ++i) {
    const size_t k = backwards() ? path.size() - 1 - i : i;
    factors[k] = BlockingFactor(path[k], speed);
    speed = NextBottleneck(path[k], speed);
  }
}

bool HasBlockedLinks(const Topology& topology) {
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    if (topology.IsGpu(NodeId(n))) continue;
    int64_t slowest = std::numeric_limits<int64_t>::max(), fastest = 0;
    for (const LinkId l : topology.In(NodeId(n)))
      slowest = std::min(slowest, topology.link(l).bandwidth_bytes_per_s);
    for (const LinkId l : topology.Out(NodeId(n)))
      fastest = std::max(fastest, topology.link(l).bandwidth_bytes_per_s);
    if (fastest > slowest) return true;
  }
  return false;
}

}  // namespace xccl
