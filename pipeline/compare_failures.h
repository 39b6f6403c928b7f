// Engines side by side over machines with randomly failed cables: how well each plans around the damage,
// beside a repaired plan for the whole machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/compare.h"
#include "pipeline/plan_result.h"

namespace xccl {

struct FailureOptions {
  int32_t draws = 0;   // machines
  int32_t cables = 1;  // failed on each
};

// One engine at one size; the means are over the draws that it planned.
struct FailureTimes {
  std::string engine;
  int64_t size_bytes = 0;
  int32_t draws = 0;
  int32_t planned = 0;             // draws with a plan
  std::optional<double> whole_us;  // on the machine without failures; absent: no plan
  double mean_us = 0, bound_us = 0, mean_ratio = 0, worst_ratio = 0;
  double synthesis_s = 0;                           // mean wall time
  std::vector<std::optional<double>> draw_us = {};  // by draw; absent: no plan
};

// The lower bounds at one size.
struct FailureBounds {
  int64_t size_bytes = 0;
  double whole_us = 0;
  std::vector<double> draw_us;
};

struct FailureComparison {
  std::string title;
  Compared on;
  std::vector<std::string> failed;    // by draw: "0<->1, 2<->3"
  std::vector<FailureTimes> times;    // by size, then by mean time
  std::vector<FailureBounds> bounds;  // by size
  std::vector<std::string> skipped;   // "ring: reason", once a reason
};

// Draw i is made with seed options.seed + i; draws leave all ranks within reach. `replan` starts from auto's
// plan for the whole machine. Requirements and errors are those of Compare; kInvalidInput where there are too
// few cables.
StatusOr<FailureComparison> CompareFailures(const Topology& topology, const Collective& collective,
                                            const std::vector<std::string>& engines,
                                            const std::vector<int64_t>& sizes, const PlanOptions& options,
                                            const FailureOptions& failures);

}  // namespace xccl
