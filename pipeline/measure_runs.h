// Measures the times of programs for `tune` by running them, on CPU ranks or on GPUs.
#pragma once

#include "pipeline/measure/hosts.h"
#include "pipeline/measure/repeat.h"
#include "pipeline/run.h"
#include "topologies/topology.h"

namespace xccl {

// Returns a function that runs a program with these settings, checks every element and returns the times.
// Sizes up to LeastUsefulBytes of the topology run at least 100 times, because the clock's error is as long
// as one operation. The topology must outlive the result. Errors: those of RunPlan; kBug for wrong elements.
MeasureRanks MeasureByRunning(const RunSettings& settings, const Topology& topology);

// Returns a function that runs a program likewise, repeatedly, until the spread of the slowest rank's times
// is known (pipeline/measure/repeat.h).
Measure MeasureRepeatedly(const RunSettings& settings, const Topology& topology);

}  // namespace xccl
