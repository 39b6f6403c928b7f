// Finds the constants of a machine model (ir/machine_model.h) by running small programs. Each constant is
// the time that one program takes longer than another one without the step in question; docs/running.md lists
// the pairs. Where SimulateProgram runs the programs, the constants of its model come out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "ir/machine_model.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// Runs a program at an nccl-tests size and checks it; returns the microseconds of one operation.
using Measure = std::function<StatusOr<double>(const LoweredProgram& lowered, int64_t size_bytes)>;

// A figure of a part that the machine lacks, or that slower threadblocks hide, keeps the value that adds no
// time: `nvlink_bytes_per_s` without NVLinks, `nic_per_mille` and `nic_hop_ps` where no GPU reaches
// another through NICs, `switch_per_mille` without a switch that multicasts, `read_bytes_per_s` without three
// GPUs; all where no GPUs can pass a message round. Where all pass NICs, `hop_ps` has what would be
// `nic_hop_ps`. `flags_travel`: LL and LL128 put flags beside the data, and LL128 needs NVLinks; without
// NVLinks it has simple's figures, since executors refuse it. Links have the topology's latency, and its
// bandwidth where it is neither of NVLinks nor of NICs. No part is larger than 16 MiB. Cost: some 40
// measurements. Requires: ranks >= 2. Errors: those of `measure`.
StatusOr<MachineModel> MeasureMachine(const Topology& topology, const std::string& source, bool flags_travel,
                                      const Measure& measure);

}  // namespace xccl
