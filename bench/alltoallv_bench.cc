// Plans skewed alltoallv on hosts of 8 GPUs, beside FAST (NSDI 2026: 32 GPUs 25 us, 64 221 us, 96 805 us, 320
// 77 ms). Counts are 1 to 100, one in eight 20 times as much. `graph` is made once per machine, `plan` for
// every set of counts: the median of 21. `ratio` is the simulated time at 1 GiB over the bound. Above 96
// ranks the bound is the fast one, which may be lower than the true one.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "base/random.h"
#include "bench/machines.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "synth/textbook/two_tier.h"

namespace xccl {
namespace {

constexpr int kRuns = 21;
constexpr int32_t kExactBound = 96;
constexpr int64_t kSize = int64_t{1} << 30;

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

Collective Skewed(int32_t n, uint64_t seed) {
  Random random(seed);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAlltoallv;
  spec.ranks = AllRanks(n);
  for (int32_t i = 0; i < n * n; ++i) {
    const auto count = static_cast<int64_t>(1 + random.Below(100));
    spec.counts.push_back(random.Below(8) == 0 ? 20 * count : count);
  }
  return *Collective::Create(spec);
}

Status Row(int32_t hosts) {
  XCCL_ASSIGN_OR_RETURN(const Topology machine, LoadMachine(fmt::format("rail:{}", hosts), ""));
  const int32_t n = machine.num_ranks();
  const auto began = std::chrono::steady_clock::now();
  const RankGraph graph(machine);
  const double graph_s = Seconds(began);
  std::vector<double> plan_s;
  double worst = 0;
  int64_t transfers = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Collective collective = Skewed(n, static_cast<uint64_t>(run));
    const auto start = std::chrono::steady_clock::now();
    XCCL_ASSIGN_OR_RETURN(const Synthesis made, PlanTwoTier(graph, collective));
    plan_s.push_back(Seconds(start));
    transfers = made.schedule.size();
    if (run >= (n > kExactBound ? 1 : 3)) continue;
    const Simulation simulation = Simulate(made.schedule, made.collective, machine, {.size_bytes = kSize});
    XCCL_ASSIGN_OR_RETURN(const Bound bound,
                          LowerBound(machine, collective, kSize, TimeModel::kPipelined,
                                     n > kExactBound ? BoundEffort::kFast : BoundEffort::kExact));
    worst = std::max(worst, static_cast<double>(simulation.time_ps) / static_cast<double>(bound.bound_ps));
  }
  std::nth_element(plan_s.begin(), plan_s.begin() + kRuns / 2, plan_s.end());
  fmt::print("{:>6} {:>12.3f} {:>12.3f} {:>10} {:>7.4f}\n", n, graph_s * 1e3, plan_s[kRuns / 2] * 1e3,
             transfers, worst);
  return OkStatus();
}

}  // namespace
}  // namespace xccl

int main() {
  fmt::print("{:>6} {:>12} {:>12} {:>10} {:>7}\n", "ranks", "graph ms", "plan ms", "transfers", "ratio");
  for (const int32_t hosts : {2, 4, 8, 12, 40}) {
    const xccl::Status status = xccl::Row(hosts);
    if (!status.ok()) {
      fmt::print(stderr, "{}\n", status.message());
      return 1;
    }
  }
  return 0;
}
