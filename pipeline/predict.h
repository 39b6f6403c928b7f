// Predicts the time of a plan at sizes other than the size that the plan was made for.
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

// A plan's time at one size: a row of the commands `simulate` and `compare`.
struct PlanTime {
  std::string engine;       // the engine that was asked for
  std::string made_by;      // the engine that made the plan; for auto, the engine whose plan auto chose
  int64_t size_bytes = 0;   // after the collective has rounded asked_bytes
  int64_t asked_bytes = 0;  // the size that was asked for; 0: as size_bytes
  int64_t time_ps = 0;
  double algbw_bytes_per_s = 0;
  double busbw_bytes_per_s = 0;
  int64_t bound_ps = 0;
  double ratio = 0;                          // time ÷ bound, also for a program; the bound is for schedules
  std::optional<int64_t> messages = {};      // messages of the schedule
  std::optional<int32_t> threadblocks = {};  // most threadblocks of the program on one rank
  bool measured = false;                     // measured on a real machine, not simulated
  std::string topology = {};                 // topology's name if several are compared, otherwise empty
  // How the plan differs from the engine's own plan: "finer", "28 messages"; empty: it is that plan. In a row
  // of a job's times: "12 calls".
  std::string variation = {};
  std::string note = {};                   // why auto kept this plan (synth/common/why_chosen.h)
  std::optional<int64_t> num_chunks = {};  // chunks of the collective, if `compare` made the plan
};
// Returns the bus bandwidth in bytes per second, as nccl-tests defines it.
double BusBandwidth(const Collective& collective, const Simulation& simulation);
PlanTime MakePlanTime(const std::string& engine, const std::string& made_by, const Collective& collective,
                      const Simulation& simulation, int64_t bound_ps);

enum class PlanLevel : uint8_t { kSchedule, kProgram };

// Returns kProgram if the plan has a program and the model of its machine is known (`machine` is not null).
// Otherwise returns kSchedule: the schedule is timed on ideal links. Every command that times plans shows the
// time at this level.
PlanLevel LevelOf(const Plan& plan, const MachineModel* machine);

// Simulates the plan's schedule or program at one size. The arguments are those of Predict. Errors: those of
// SimulateProgram.
StatusOr<Simulation> SimulatePlan(const Plan& plan, int64_t size_bytes, TimeModel model, PlanLevel level,
                                  const MachineModel* machine);

// Returns for each size the bound and the simulated time of the plan's schedule or program. A program runs on
// `machine`; if `machine` is null, only links take time. Errors: those of SimulateProgram and LowerBound.
// Requires: a program, if `level` is kProgram.
StatusOr<std::vector<PlanTime>> Predict(const Plan& plan, std::span<const int64_t> sizes, TimeModel model,
                                        PlanLevel level, const MachineModel* machine = nullptr);

}  // namespace xccl
