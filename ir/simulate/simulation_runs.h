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
  // Segments of the longest run. If they are not all, the time is on the line through that run and the one
  // with half as many segments.
  int64_t longest = 1;
};

// As Simulate, which returns the simulation of it.
SimulationRuns RunSimulation(const Schedule& schedule, const Collective& collective, const Topology& topology,
                             const SimulateOptions& options);

// The time of an event with `segments` segments where it happens at `last` in a run with `longest` and at
// `before` in one with half as many. `last` if longest is all of them.
int64_t OnSteadyLine(int64_t before, int64_t last, int64_t longest, int64_t segments);

}  // namespace xccl
