// The bound of alltoall(v) and sendrecv is the larger of two: the concurrent flow of all demands
// (ir/bounds/concurrent_flow.h), and the worst of some cuts that are quick to list. If the machine has
// translations, the flow has one price for each orbit of links, and one source for each orbit of ranks.
#include <algorithm>

#include "base/units.h"
#include "ir/bounds/bound_bandwidth.h"
#include "ir/bounds/concurrent_flow.h"
#include "ir/bounds/demand_flow.h"

namespace xccl {
namespace {

// Relative rounding error of the linear program. A flow whose load is so close to the bound attains it.
constexpr double kMeets = 1e-9;
// The most sources × links × rounds for one call of CrowdedFlowBound(), and the most rounds.
constexpr int64_t kCrowdWork = 3'000'000;
constexpr int32_t kCrowdRounds = 30;
// The most sources × links for which CrowdedFlowBound() is called at all. If there are more, the cuts alone
// are the bound.
constexpr int64_t kMostCrowdWork = 400'000'000;

}  // namespace

BandwidthBound DemandBound(const Topology& topology, const Collective& collective,
                           const CollectiveSizes& sizes, BoundEffort effort, Orbits& orbits) {
  const DemandFlow of =
      DemandFlowOf(topology, collective, sizes, orbits.OfCollective(collective, sizes), true);
  const FlowProblem& problem = of.problem;
  if (problem.demands.sources.empty()) return {0, BoundKind::kCut};
  const double scale = static_cast<double>(kPsPerSecond);
  double seconds = of.cuts_s;
  const int64_t sources = static_cast<int64_t>(problem.demands.sources.size());
  const int64_t rows = static_cast<int64_t>(problem.share.size());
  const int64_t work = sources * topology.num_links();
  if (work > kMostCrowdWork) return {seconds * scale, BoundKind::kRelaxed};
  if (effort == BoundEffort::kFast && sources * rows > kFastLpWork)
    return {std::max(seconds, CrowdedFlowBound(problem, 1)) * scale, BoundKind::kRelaxed};
  if (sources * rows <= kLpWork) {
    const ConcurrentFlow flow = SolveConcurrentFlow(problem, BoundFlowOptions(problem));
    seconds = std::max(seconds, flow.bound_s);
    if (flow.load_s <= seconds * (1 + kMeets)) return {seconds * scale, BoundKind::kLp};
  }
  const int32_t rounds = static_cast<int32_t>(std::clamp<int64_t>(kCrowdWork / work, 1, kCrowdRounds));
  seconds = std::max(seconds, CrowdedFlowBound(problem, rounds));
  return {seconds * scale, BoundKind::kRelaxed};
}

}  // namespace xccl
