// Measures the constants of a machine model (ir/machine_model.h) by running small programs. Each constant is
// the difference of the times of two programs, of which only one has the step in question. docs/running.md
// lists the pairs of programs. If SimulateProgram runs the programs, the result is the model that it used.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "ir/machine_model.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// Runs a program at a size (as nccl-tests counts it) and checks the results. Returns the microseconds of one
// operation.
using Measure = std::function<StatusOr<double>(const LoweredProgram& lowered, int64_t size_bytes)>;

// Measures the machine model of the topology's machine. A constant keeps its default, which adds no time, if
// the machine lacks the hardware or if threadblocks are too slow to show the constant:
// - `nvlink_bytes_per_s` without NVLinks;
// - `nic_per_mille` and `nic_hop_ps` if no GPU reaches another GPU through NICs;
// - `switch_per_mille` without a switch that multicasts;
// - `read_bytes_per_s` with fewer than three GPUs;
// - all constants if no ring of GPUs exists.
// If all paths pass NICs, `hop_ps` includes the time that would be `nic_hop_ps`. `flags_travel`: LL and LL128
// send flags with the data. LL128 then needs NVLinks; without NVLinks it gets the constants of simple,
// because executors refuse LL128. Latencies, and bandwidths of links that are neither NVLinks nor NIC links,
// are those of the topology. The largest message is 16 MiB. Cost: about 40 measurements. Requires at least
// two ranks. Errors: those of `measure`.
StatusOr<MachineModel> MeasureMachine(const Topology& topology, const std::string& source, bool flags_travel,
                                      const Measure& measure);

}  // namespace xccl
