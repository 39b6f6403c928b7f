// Times programs for `tune` by running them, on CPU ranks or on GPUs.
#pragma once

#include "pipeline/measure/hosts.h"
#include "pipeline/measure/machine.h"
#include "pipeline/run.h"
#include "topologies/topology.h"

namespace xccl {

// Runs a program as the settings say, and checks every element. Sizes up to LeastUsefulBytes of the topology
// run at least 100 times: the clock's error at both ends of a run is as long as one small operation. The
// topology outlives the result. Errors: those of RunPlan; kBug where elements are wrong.
MeasureRanks MeasureByRunning(const RunSettings& settings, const Topology& topology);

// The time of the slowest rank, where `measure` gives the time of every rank.
Measure SlowestOf(const MeasureRanks& measure);

}  // namespace xccl
