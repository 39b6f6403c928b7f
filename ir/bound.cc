#include "ir/bound.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/bound_bandwidth.h"
#include "ir/bound_latency.h"
#include "ir/sizes.h"
#include "topologies/dead_ends.h"

namespace xccl {

std::string_view ToString(BoundKind kind) {
  switch (kind) {
    case BoundKind::kCut:
      return "cut";
    case BoundKind::kFlow:
      return "flow";
    case BoundKind::kLp:
      return "lp";
    case BoundKind::kCounting:
      return "counting";
    case BoundKind::kRelaxed:
      return "relaxed";
  }
  return "";
}

StatusOr<Bound> LowerBound(const Topology& topology, const Collective& collective, int64_t size_bytes,
                           TimeModel model, BoundEffort effort) {
  Bound bound;
  XCCL_ASSIGN_OR_RETURN(bound.latency_ps, LatencyBound(topology, collective, model));
  const CollectiveSizes sizes(collective, size_bytes);
  bound.size_bytes = sizes.size_bytes();
  // Bandwidth into dead ends serves nobody, but partitions would count it.
  const std::optional<Topology> pruned = WithoutDeadEnds(topology);
  const BandwidthBound bandwidth = BandwidthBoundOf(pruned ? *pruned : topology, collective, sizes, effort);
  bound.bandwidth_ps = bandwidth.ps;
  bound.kind = bandwidth.kind;
  bound.bound_ps = std::max(bound.latency_ps, static_cast<int64_t>(std::floor(bound.bandwidth_ps)));
  return bound;
}

Status CheckReachable(const Topology& topology, const Collective& collective) {
  return LatencyBound(topology, collective, TimeModel::kPipelined).status();
}

}  // namespace xccl
