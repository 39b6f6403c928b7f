// Times programs for `tune` by running them, on CPU ranks or on GPUs.
#pragma once

#include "pipeline/measure/hosts.h"
#include "pipeline/measure/machine.h"
#include "pipeline/run.h"
#include "topologies/topology.h"

namespace xccl {

// Runs a program as the settings say, and checks every element; at sizes up to 64 KiB at least 100 times,
// since the start and the end of a small operation are blurred by as much as it takes. The topology outlives
// it. Errors: those of RunPlan; kBug where elements are wrong.
MeasureRanks MeasureByRunning(const RunSettings& settings, const Topology& topology);

// The slowest rank's time.
Measure SlowestOf(const MeasureRanks& measure);

}  // namespace xccl
