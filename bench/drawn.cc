#include "bench/drawn.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>

#include "base/units.h"
#include "ir/testing/graphs.h"
#include "pipeline/pipeline.h"
#include "tests/testing/machine_kinds.h"

namespace xccl::bench {

Topology DrawnMachine(uint64_t seed, int32_t ranks) {
  return testing::MakeMachineOfKind(static_cast<int32_t>(seed / 2 % testing::kMachineKinds), seed, ranks);
}

Collective DrawnCollective(CollectiveKind kind, const Topology& topology) {
  const std::optional<Rank> root = IsRooted(kind) ? std::optional(Rank(0)) : std::nullopt;
  return testing::MakeCollective(kind, topology.num_ranks(), root);
}

double TimePs(const PlanResult& result) {
  const int64_t schedule = result.simulation.time_ps;
  return static_cast<double>(std::min(schedule, result.program_time_ps.value_or(schedule)));
}

StatusOr<Drawn> PlanDrawn(const Topology& topology, CollectiveKind kind, PlanOptions options) {
  const Collective collective = DrawnCollective(kind, topology);
  options.request.topology = &topology;
  options.request.collective = &collective;
  const std::clock_t began = std::clock();
  XCCL_ASSIGN_OR_RETURN(const PlanResult result, MakePlan(topology, collective, options));
  const double cpu_s = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  return Drawn{.time_ps = TimePs(result),
               .ratio = TimePs(result) / static_cast<double>(result.bound.bound_ps),
               .cpu_s = cpu_s,
               .messages = result.schedule_stats.messages,
               .exact = result.exact,
               .machine = topology.name(),
               .engine = result.plan.made_by.engine,
               .what = fmt::format("{} {}", ToString(kind), FormatSize(options.request.size_bytes))};
}

double Quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(std::ceil(share * static_cast<double>(values.size() - 1)))];
}

}  // namespace xccl::bench
