#include "pipeline/measure_runs.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/plan.h"
#include "runtime/run_row.h"
#include "synth/common/cost_model.h"

namespace xccl {
namespace {

// The least number of repetitions of a small operation, whose messages cost more than its bytes. The clock's
// error at the ends of a run is about one small operation, which is then 1 % of the run.
constexpr int32_t kSmallIterations = 100;

// Runs a program at a size, and checks every element.
StatusOr<RunRow> RunOnce(const RunSettings& settings, const Topology& topology, const LoweredProgram& lowered,
                         int64_t size_bytes) {
  const Plan plan{topology, lowered.collective, {}, lowered, {}};
  RunSettings of_size = settings;
  if (size_bytes <= LeastUsefulBytes(topology))
    of_size.options.iterations = std::max(of_size.options.iterations, kSmallIterations);
  XCCL_ASSIGN_OR_RETURN(const RunResult result, RunPlan("tune", plan, {}, {size_bytes}, of_size, {}));
  if (!AllRight(result.rows)) return BugError("tune: elements are wrong");
  return result.rows.front();
}

}  // namespace

MeasureRanks MeasureByRunning(const RunSettings& settings, const Topology& topology) {
  return [settings, &topology](const LoweredProgram& lowered,
                               int64_t size_bytes) -> StatusOr<std::vector<double>> {
    XCCL_ASSIGN_OR_RETURN(const RunRow row, RunOnce(settings, topology, lowered, size_bytes));
    return row.rank_us;
  };
}

Measure MeasureRepeatedly(const RunSettings& settings, const Topology& topology) {
  return RepeatUntilKnown([settings, &topology](const LoweredProgram& lowered,
                                                int64_t size_bytes) -> StatusOr<std::vector<double>> {
    XCCL_ASSIGN_OR_RETURN(const RunRow row, RunOnce(settings, topology, lowered, size_bytes));
    return row.sample_us;
  });
}

}  // namespace xccl
