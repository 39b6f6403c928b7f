// The critical path of one run of the event simulation of a schedule, found from its log.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/simulate/critical_path.h"
#include "ir/simulate/event_loop.h"
#include "ir/simulate/simulation_model.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// Returns the pieces of the chain that ends with the last arrival, last piece first. Requires: the arguments
// of the run that wrote the log. Cost: linear in the model and the log.
std::vector<PathPiece> ChainOf(const SimulationModel& model, const Topology& topology, TimeModel time_model,
                               int64_t parts, int64_t segments, const EventLog& log);

}  // namespace xccl
