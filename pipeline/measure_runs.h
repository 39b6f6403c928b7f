// Measures the times of programs for `tune` by running them, on CPU ranks or on GPUs.
#pragma once

#include "pipeline/measure/hosts.h"
#include "pipeline/measure/machine.h"
#include "pipeline/run.h"
#include "topologies/topology.h"

namespace xccl {

// Returns a function that runs a program with these settings, checks every element and returns the times.
// Sizes up to LeastUsefulBytes of the topology run at least 100 times, because the clock's error is as long
// as one operation. The topology must outlive the result. Errors: those of RunPlan; kBug for wrong elements.
MeasureRanks MeasureByRunning(const RunSettings& settings, const Topology& topology);

// Returns a function that returns the time of the slowest rank, of the times that `measure` returns.
Measure SlowestOf(const MeasureRanks& measure);

}  // namespace xccl
