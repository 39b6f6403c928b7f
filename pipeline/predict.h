// The time of a plan at other sizes than the one that it was made for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/plan.h"
#include "ir/simulate/simulate.h"
#include "ir/time_model.h"

namespace xccl {

// A plan's time at one size: a row of `simulate` and `compare`. `compare` divides a program's time, too, by
// the bound of schedules.
struct PlanTime {
  std::string engine;   // as asked for
  std::string made_by;  // the engine that made the plan: auto's winner
  int64_t size_bytes = 0;
  int64_t time_ps = 0;
  double algbw_bytes_per_s = 0;
  double busbw_bytes_per_s = 0;
  int64_t bound_ps = 0;
  double ratio = 0;
  std::optional<int64_t> messages = {};      // the schedule's
  std::optional<int32_t> threadblocks = {};  // the program's, the most on one rank
  bool measured = false;                     // the time was measured on a real machine; else simulated
  std::string topology = {};                 // its name where several are compared; else empty
};
// nccl-tests' bus bandwidth in bytes per second.
double BusBandwidth(const Collective& collective, const Simulation& simulation);
PlanTime MakePlanTime(const std::string& engine, const std::string& made_by, const Collective& collective,
                      const Simulation& simulation, int64_t bound_ps);

enum class PlanLevel : uint8_t { kSchedule, kProgram };

// For each size, the simulated time of the plan's schedule, or of its program on a machine (null: only links
// take time), and the bound. Errors: kInvalidInput where a program cannot be simulated. Requires: a program,
// for its level.
StatusOr<std::vector<PlanTime>> Predict(const Plan& plan, std::span<const int64_t> sizes, TimeModel model,
                                        PlanLevel level, const MachineModel* machine = nullptr);

}  // namespace xccl
