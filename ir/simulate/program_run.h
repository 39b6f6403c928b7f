// One run of the event simulation of a program with a given number of passes, and the runs from which
// SimulateProgram finds its time. ir/simulate/simulate_program.h defines the simulation.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/analysis/program_index.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "topologies/topology.h"

namespace xccl {

class ProgramLog;  // ir/simulate/program_log.h

// The inputs that all runs of a simulation share. They outlive the setting.
struct ProgramSetting {
  const Program& program;
  const Collective& collective;
  const CollectiveSizes& sizes;
  const ProgramIndex& index;
  const Topology& topology;
  const SimulateOptions& options;
  int32_t passes = 1;  // passes of the program at these sizes
};

// The time of so many passes, without the launch. `whole`: passes past the end count as if the chunks
// continued, to observe a steady state. `log`, unless null, is told everything. Errors: as SimulateProgram.
StatusOr<int64_t> RunProgram(const ProgramSetting& setting, int32_t passes, bool whole,
                             ProgramLog* log = nullptr);

// How the time of all passes was found.
struct ProgramRuns {
  int64_t time_ps = 0;  // without the launch
  // Passes of the longest run. If they are not all, they were whole, and the time is on the line through that
  // run and the one with half as many, at real_passes.
  int32_t longest = 1;
  bool extrapolated = false;
  double real_passes = 1;  // the last pass may be shorter than the others
};
// The time of an event where it happens at `last` in the longest run and at `before` in the one with half as
// many passes.
int64_t OnProgramLine(int64_t before, int64_t last, const ProgramRuns& runs);

StatusOr<ProgramRuns> RunAllPasses(const ProgramSetting& setting);
// The launch included.
Simulation SimulationOf(const ProgramSetting& setting, const ProgramRuns& runs);
// Errors: kInvalidInput for a connection without a path.
Status CheckPaths(const Program& program);

}  // namespace xccl
