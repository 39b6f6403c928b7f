// Measures the constants of a machine model (ir/machine_model.h) by running small programs. A constant comes
// from the difference of two times: of two programs, only one of which has the step in question, or of one
// program at two sizes. docs/running.md lists the programs. If SimulateProgram runs the programs, the result
// is the model that it used.
#pragma once

#include <string>

#include "base/status.h"
#include "ir/machine_model.h"
#include "pipeline/measure/repeat.h"
#include "topologies/topology.h"

namespace xccl {

struct MeasuredMachine {
  MachineModel model;
  // Why the model's times cannot be trusted: "measurements vary by 34 %; the model is not reliable: launch
  // 0us". Empty if they can.
  std::string doubt;
};

// Measures the machine model of the topology's machine. A constant keeps its default, which adds no time, if
// the machine lacks the hardware or if threadblocks are too slow to show the constant:
// - `nvlink_bytes_per_s` without NVLinks;
// - `nic_per_mille` and `nic_hop_ps` if no GPU reaches another GPU through NICs;
// - `switch_per_mille` without a switch that multicasts from one GPU to two others;
// - `read_bytes_per_s` if fewer than two GPUs reach the first GPU of the ring;
// - all constants if no ring of GPUs exists.
// If every ring passes NICs, `hop_ps` includes the time that would be `nic_hop_ps`. `flags_travel`: LL and
// LL128 send flags with the data. LL128 then needs NVLinks; without NVLinks it gets the constants of simple,
// because executors refuse LL128. Latencies, and bandwidths of links that are neither NVLinks nor NIC links,
// are those of the topology. The largest message is 16 MiB. The model is in doubt if nothing was measured, if
// a launch or a hop takes no time, if the measurements vary too much to be subtracted from each other, or if
// the model does not give back the times that were measured. Cost: about 40 measurements. Requires at least
// two ranks. Errors: those of `measure`.
StatusOr<MeasuredMachine> MeasureMachine(const Topology& topology, const std::string& source,
                                         bool flags_travel, const Measure& measure);

}  // namespace xccl
