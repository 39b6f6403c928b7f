// The runs by which Simulate found a time, for callers that also show how the time came about
// (ir/simulate/trace.h).
#pragma once

#include <cstdint>
#include <optional>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulation_model.h"
#include "topologies/topology.h"

namespace xccl {

struct SimulationRuns {
  Simulation simulation;
  std::optional<Schedule> plain;   // the plain form, if it was run in place of a compressed schedule
  std::optional<Topology> slower;  // the topology with slower links, if it was used in place of the given one
  Quotient quotient;
  SimulationModel model;  // model of the schedule that was run
  int64_t segments = 1;   // segments of every unit
  // Segments of the longest run. If each unit has more, the time is extrapolated on the line through this run
  // and the run with half as many segments.
  int64_t longest = 1;
};

// Does the work of Simulate, which returns the field `simulation` alone.
SimulationRuns RunSimulation(const Schedule& schedule, const Collective& collective, const Topology& topology,
                             const SimulateOptions& options);

// Returns the time of an event in a run of `segments` segments, if the event happens at `last` in a run of
// `longest` segments and at `before` in a run of half as many. Returns `last` if `longest` >= `segments`.
int64_t OnSteadyLine(int64_t before, int64_t last, int64_t longest, int64_t segments);

}  // namespace xccl
