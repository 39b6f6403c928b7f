// Times programs for `tune` by running them, on CPU ranks or on GPUs.
#pragma once

#include "pipeline/measure/hosts.h"
#include "pipeline/measure/machine.h"
#include "pipeline/run.h"
#include "topologies/topology.h"

namespace xccl {

// Runs a program as the settings say, and checks every element. Sizes up to 64 KiB run at least 100 times:
// the clock's error at both ends of a run is as long as one small operation. The topology outlives the
// result. Errors: those of RunPlan; kBug where elements are wrong.
MeasureRanks MeasureByRunning(const RunSettings& settings, const Topology& topology);

// The slowest rank's time.
Measure SlowestOf(const MeasureRanks& measure);

}  // namespace xccl
