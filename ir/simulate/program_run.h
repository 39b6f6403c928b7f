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

// Returns the time of `passes` passes, without the launch. `whole`: every pass moves as much as the first
// one, as if chunks had no end, so that a steady state can be observed. `log`, unless null, is told
// everything. Errors: as SimulateProgram.
StatusOr<int64_t> RunProgram(const ProgramSetting& setting, int32_t passes, bool whole,
                             ProgramLog* log = nullptr);

// How the time of all passes was found.
struct ProgramRuns {
  int64_t time_ps = 0;  // without the launch
  // Passes of the longest run. If the program has more, all passes of the run are as long as the first one.
  // The time is then extrapolated: it lies at real_passes on the line through this run and the run with half
  // as many passes.
  int32_t longest = 1;
  bool extrapolated = false;
  double real_passes = 1;  // the last pass may be shorter than the others
};
// Returns the time of an event in the whole program, if the event happens at `last` in the longest run and at
// `before` in the run with half as many passes.
int64_t OnProgramLine(int64_t before, int64_t last, const ProgramRuns& runs);

// Runs all passes or, if they are too many, enough of them to find a steady state.
StatusOr<ProgramRuns> RunAllPasses(const ProgramSetting& setting);
// Returns the simulation; its time includes the launch.
Simulation SimulationOf(const ProgramSetting& setting, const ProgramRuns& runs);
// Returns kInvalidInput if a connection has no path.
Status CheckPaths(const Program& program);

}  // namespace xccl
