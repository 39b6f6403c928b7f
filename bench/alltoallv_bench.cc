// Plans skewed alltoallv on hosts of 8 GPUs, beside FAST (NSDI 2026). Counts are 1 to 100, one in eight 20
// times as much. `graph` is made once per machine, `plan` for every set of counts: CPU time, the median
// of 21. `ratio` is the simulated time at 1 GiB over the bound. Above 96 ranks the bound is the fast one,
// which may be lower than the true one.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "base/random.h"
#include "base/standard_streams.h"
#include "bench/machines.h"
#include "bench/markdown_table.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "synth/textbook/two_tier.h"

namespace xccl {
namespace {

constexpr int kRuns = 21;
constexpr int32_t kExactBound = 96;
constexpr int64_t kSize = int64_t{1} << 30;

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

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

Status AddRow(int32_t hosts, double fast_ms, MarkdownTable& table) {
  XCCL_ASSIGN_OR_RETURN(const Topology machine, LoadMachine(fmt::format("rail:{}", hosts), ""));
  const int32_t n = machine.num_ranks();
  const double began = CpuSeconds();
  const RankGraph graph(machine);
  const double graph_s = CpuSeconds() - began;
  std::vector<double> plan_s;
  double worst = 0;
  int64_t transfers = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Collective collective = Skewed(n, static_cast<uint64_t>(run));
    const double start = CpuSeconds();
    XCCL_ASSIGN_OR_RETURN(const Synthesis made, PlanTwoTier(graph, collective));
    plan_s.push_back(CpuSeconds() - start);
    transfers = made.schedule.size();
    if (run >= (n > kExactBound ? 1 : 3)) continue;
    const Simulation simulation = Simulate(made.schedule, made.collective, machine, {.size_bytes = kSize});
    XCCL_ASSIGN_OR_RETURN(const Bound bound,
                          LowerBound(machine, collective, kSize, TimeModel::kPipelined,
                                     n > kExactBound ? BoundEffort::kFast : BoundEffort::kExact));
    worst = std::max(worst, static_cast<double>(simulation.time_ps) / static_cast<double>(bound.bound_ps));
  }
  std::nth_element(plan_s.begin(), plan_s.begin() + kRuns / 2, plan_s.end());
  table.Row(n, fmt::format("{:.3f}", graph_s * 1e3), fmt::format("{:.3f}", plan_s[kRuns / 2] * 1e3),
            transfers, fmt::format("{:.4f}", worst), fast_ms);
  return OkStatus();
}

}  // namespace
}  // namespace xccl

int main() {
  xccl::MarkdownTable table({"ranks:", "graph ms:", "plan ms:", "transfers:", "ratio:", "FAST ms:"});
  struct Case {
    int32_t hosts;
    double fast_ms;
  };
  for (const auto& [hosts, fast_ms] : {Case{2, 0.003}, {4, 0.025}, {8, 0.221}, {12, 0.805}, {40, 77}}) {
    const xccl::Status status = xccl::AddRow(hosts, fast_ms, table);
    if (!status.ok()) {
      xccl::PrintError(fmt::format("{}\n", status.message()));
      return 1;
    }
  }
  table.Print();
  return 0;
}
