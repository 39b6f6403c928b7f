// Compares engines on machines with randomly failed cables. Also compares them with a repaired plan, which
// starts from a plan for the machine without failures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/compare.h"
#include "pipeline/plan_result.h"

namespace xccl {

struct FailureOptions {
  int32_t draws = 0;   // number of damaged machines to draw, no two alike
  int32_t cables = 1;  // failed cables of each damaged machine
};

// The times of one engine at one size. Means are over the draws for which the engine has a plan.
struct FailureTimes {
  std::string engine;
  int64_t size_bytes = 0;
  int32_t draws = 0;
  int32_t planned = 0;             // draws with a plan
  std::optional<double> whole_us;  // time on the machine without failures; absent: no plan
  double mean_us = 0, bound_us = 0, mean_ratio = 0, worst_ratio = 0;
  double synthesis_s = 0;                           // mean wall time
  std::vector<std::optional<double>> draw_us = {};  // time on each draw; absent: no plan
};

// The lower bounds at one size: of the machine without failures and of each draw.
struct FailureBounds {
  int64_t size_bytes = 0;
  double whole_us = 0;
  std::vector<double> draw_us;
};

struct FailureComparison {
  std::string title;
  Compared on;
  std::vector<std::string> failed;    // the failed cables of each draw: "0<->1, 2<->3"
  std::vector<FailureTimes> times;    // by size, then by draws without a plan, then by mean time
  std::vector<FailureBounds> bounds;  // by size
  std::vector<std::string> skipped;   // "ring: reason"; every line is different
  std::string fewer = {};             // says that fewer draws were found than were asked for; empty otherwise
};

// Compares the engines and `replan` on failures.draws damaged machines, or on fewer if no more are found that
// leave the members within reach (FailCablesOften, with the request's seed). All times are those of schedules
// on ideal links. `replan` starts from auto's plan for the machine without failures. Errors: those of
// Compare; kInvalidInput if the machine has too few cables; kLimit if every draw cuts members off.
StatusOr<FailureComparison> CompareFailures(const Topology& topology, const Collective& collective,
                                            const std::vector<std::string>& engines,
                                            const std::vector<int64_t>& sizes, const PlanOptions& options,
                                            const FailureOptions& failures);

}  // namespace xccl
