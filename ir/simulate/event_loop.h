// One run of the event simulation with a given number of segments per unit. Takes the model of a schedule
// (ir/simulate/simulation_model.h, which defines units and jobs). Returns the time of the last arrival and,
// on request, when each unit starts and arrives, or when each job occupies its link. Cost: one heap operation
// and two or three events per job and segment. ir/simulate/simulate.h defines what is simulated.
#pragma once

#include <cstdint>
#include <vector>

#include "base/deadline.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulation_model.h"
#include "topologies/topology.h"

namespace xccl {

// When every segment of every job occupied its link. The entry of (job, segment) is job × segments + segment.
struct EventLog {
  std::vector<int64_t> start_ps, end_ps;
  std::vector<int64_t> order;  // the entries, in the order in which links took them
};

// Runs `segments` segments of every unit; a segment is one of `parts` equal parts of the unit's bytes.
// Returns the last arrival, or kForeverPs if the deadline passes first. `record`, unless null, gets one entry
// for each unit, and `log`, unless null, one for each job and segment. Requires: a model that is sound.
int64_t RunEvents(const SimulationModel& model, const Topology& topology, TimeModel time_model, int64_t parts,
                  int64_t segments, MoveTimes* record = nullptr, const Deadline& deadline = Deadline(),
                  EventLog* log = nullptr);

}  // namespace xccl
