#include "dispatch/gpu_time.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "dispatch/predict.h"

namespace xccl::dispatch {
namespace {

// Warps of the 512 threads whose bytes in flight are the model's rate of a threadblock (ir/machine_model.h).
constexpr int32_t kWarpsOfBlock = 16;

}  // namespace

ExpertPlan OnMachine(ExpertPlan plan, const MachineModel& model) {
  TopologySpec spec = WithReachedBandwidths(plan.topology, model).spec();
  // A way from NIC to NIC leaves one and enters the other.
  for (Link& link : spec.links) {
    const bool from_nic = spec.nodes[link.from.index()].kind == NodeKind::kNic;
    const bool to_nic = spec.nodes[link.to.index()].kind == NodeKind::kNic;
    const auto is_gpu_side = [&](NodeId node) { return spec.nodes[node.index()].host.has_value(); };
    if (from_nic != to_nic && is_gpu_side(link.from) && is_gpu_side(link.to))
      link.latency_ps += model.nic_hop_ps / 2;
  }
  StatusOr<Topology> made = Topology::Create(std::move(spec));
  XCCL_CHECK(made.ok());  // latencies of a few microseconds more are within the limits
  plan.topology = *std::move(made);
  return plan;
}

int64_t GpuTimePs(const ExpertPlan& plan, Call call, std::span<const int64_t> rows, const MachineModel& model,
                  std::optional<int32_t> blocks) {
  const int64_t bytes = plan.sizes.row_bytes + HeaderBytes(plan.sizes, call);
  const ProtocolCost& cost = model.CostOf(Protocol::kSimple);
  std::vector<int64_t> sent(plan.sizes.ranks);
  std::vector<bool> used(plan.stage_of_depth.size());
  for (size_t h = 0; h < plan.hops.size(); ++h) {
    const Hop& hop = plan.hops[h];
    if (rows[h] == 0) continue;
    sent[(call == Call::kDispatch ? hop.from : hop.to).index()] += rows[h] * bytes;
    used[hop.stage] = true;
  }
  const int64_t most = *std::ranges::max_element(sent);
  if (most == 0) return model.launch_ps;
  int64_t time = Predictor(plan, call).TimePs(rows);
  if (blocks) time = std::max(time, TransferPs(most, cost.block_bytes_per_s * *blocks));
  int64_t stage_ps = 2 * cost.message_ps + cost.hop_ps;
  if (plan.aim == Aim::kLatency) stage_ps += 2 * TransferPs(bytes, cost.block_bytes_per_s / kWarpsOfBlock);
  return model.launch_ps + time + std::ranges::count(used, true) * stage_ps;
}

}  // namespace xccl::dispatch
