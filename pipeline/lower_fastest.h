// Lowers several schedules of one request and keeps the one with the fastest program. The fastest schedule
// need not have the fastest program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/program.h"
#include "pipeline/plan_result.h"
#include "synth/common/synthesizer.h"
#include "topologies/topology.h"

namespace xccl {

struct FastestProgram {
  std::optional<LoweredProgram> program = {};  // absent if the length, memory or time does not allow one
  std::optional<int64_t> time_ps = {};         // by SimulateProgram; absent: the program was not simulated
  std::string no_program = {};                 // why `program` is absent
  std::string note = {};                       // why this schedule was kept; empty: the engine's note holds
  std::vector<std::string> faults = {};        // errors of wrong schedules; each names its engine
};

// Lowers every schedule whose program may be faster than the best program so far, short schedules first, but
// only one long schedule of each engine. Keeps one program of those that take up to kToleratedRatio times as
// long as the fastest: if the fastest has short messages, that with the fewest messages, otherwise that of
// the first schedule in `found`. Moves its schedule to the front of `found`; all others keep their order.
// Makes no program if the first schedule is too long, or too large for the memory or the time that is left.
// If no program fits the default limit of threadblocks, lowers the first schedule without this limit. Cost:
// the lowered schedules together have at most kManyTransfers (synth/common/cost_model.h) transfers, or one
// schedule has more; small schedules are lowered beyond that. Errors: those of LowerTimed and
// SimulateProgram, except a passed deadline; kBug if a schedule is wrong and no program was made. Requires:
// every schedule has its simulation, and the first schedule verifies.
StatusOr<FastestProgram> LowerFastest(const Topology& topology, const PlanOptions& options,
                                      std::vector<Synthesis>& found);

// Returns whether the status may be that of a passed deadline: kLimit, if the deadline can pass. The caller
// then keeps the plan without its program.
bool IsLate(const Status& status, const PlanOptions& options);

}  // namespace xccl
