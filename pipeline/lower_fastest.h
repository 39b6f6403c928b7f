// Lowering for the fastest program: the fastest schedule need not have the fastest program, so that several
// schedules of one request are lowered and the program's time decides.
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
  std::optional<LoweredProgram> program = {};  // absent: there is none in time, or it is too long
  std::optional<int64_t> time_ps = {};         // as SimulateProgram has it; absent: it was not simulated
  std::string no_program = {};                 // why it is absent
  std::string note = {};                       // why not the preferred schedule was taken; empty: it was
  std::vector<std::string> faults = {};        // schedules that turned out wrong, with their engines
};

// Lowers found.front() and, where a schedule behind it takes less time than its program or is small, that
// schedule as well. The schedule of the fastest program becomes found.front(), and all others keep their
// order. Programs of more threadblocks than a GPU runs at a time are better than none. Cost: after the
// first schedule, five others at most, of kManyTransfers (synth/common/cost_model.h) together, besides tiny
// ones. Errors: those of LowerTimed and SimulateProgram, but for the deadline.
// Requires: schedules with their simulations, of which the first verifies.
StatusOr<FastestProgram> LowerFastest(const Topology& topology, const PlanOptions& options,
                                      std::vector<Synthesis>& found);

// Is the status a limit of time that the options have? A plan is then kept without what is missing.
bool IsLate(const Status& status, const PlanOptions& options);

}  // namespace xccl
