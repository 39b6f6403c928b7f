#include "synth/common/problem.h"

#include "ir/time_model.h"

namespace xccl {

std::vector<LinkCost> LinkCosts(const Topology& topology, TimeModel model) {
  std::vector<LinkCost> costs;
  costs.reserve(static_cast<size_t>(topology.num_links()));
  for (const Link& link : topology.spec().links) {
    const bool blocking = model == TimeModel::kBlocking;
    costs.push_back({.fixed_ps = link.overhead_ps + (blocking ? link.latency_ps : 0),
                     .delay_ps = blocking ? 0 : link.latency_ps,
                     .bytes_per_s = link.bandwidth_bytes_per_s});
  }
  return costs;
}

}  // namespace xccl
