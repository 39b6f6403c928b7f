// The simulation of a schedule, written down: when each message is on each link of its path, when each chunk
// arrives, and why it takes as long as it does. The times are exactly Simulate's. If Simulate extrapolates a
// steady state, each event's time is extrapolated from the same two runs. Trace of a program:
// trace_program.h.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/simulate/critical_path.h"
#include "ir/simulate/simulate.h"
#include "topologies/topology.h"

namespace xccl {

struct TraceOptions {
  int64_t most_slices = 1 << 18;     // if there are more, all slices are left out
  int64_t most_transfers = 1 << 18;  // a longer plain form is not written out for the trace
  int64_t most_events = 1 << 24;     // chunks of messages × links × segments of the longest run
};

struct TracedMessage {
  int32_t step = 0;
  Rank src, dst;  // as in the schedule; for a tree its root and its first other end
  PathId path;
  int64_t bytes = 0;
  int64_t first_hop = 0;  // index in ScheduleTrace::hops; one hop for each link of the path, in its order
};

// A message on one link of its path.
struct TracedHop {
  int32_t message = 0;
  LinkId link;
  int64_t start_ps = 0;    // the link takes its first byte
  int64_t end_ps = 0;      // the link is done with its last byte
  int64_t arrival_ps = 0;  // its last byte is at the end of the link
  int64_t busy_ps = 0;     // how long the link was occupied by it in between, without stalls
};

// A stretch of time in which a link carries one message without a break.
struct TracedSlice {
  int64_t hop = 0;  // index in ScheduleTrace::hops
  int64_t start_ps = 0, end_ps = 0;
  int64_t segments = 0;
};

struct ScheduleTrace {
  Simulation simulation;  // as Simulate returns it
  Schedule schedule;      // the schedule that was traced: the plain form or, if that is too long, the columns
  int64_t copies = 1;     // translates that each message and link stands for; 1 in a plain schedule
  int64_t segments = 1;   // number of segments of each chunk (blocking: of each message)
  int64_t ran_segments = 1;               // segments of the longest run; fewer where times are extrapolated
  std::vector<TracedMessage> messages;    // by step, then order of first transfer
  std::vector<int32_t> message_of;        // by transfer
  std::vector<TracedHop> hops;            // by message, then link of its path
  std::vector<TracedSlice> slices;        // by start; empty if times are extrapolated or there are too many
  std::vector<int64_t> chunk_arrival_ps;  // by transfer, then chunk: when its last byte has arrived
  CriticalPath critical_path;
};

// Returns the trace. Requires: as Simulate. Cost: that of Simulate twice, and memory for the events of its
// longest run. Errors: kInvalidInput if the schedule is unsound. kLimit if there are more than most_events
// events, if the deadline passes, or if the schedule is one of a damaged machine and its plain form has more
// than most_transfers transfers.
StatusOr<ScheduleTrace> TraceSchedule(const Schedule& schedule, const Collective& collective,
                                      const Topology& topology, const SimulateOptions& options,
                                      const TraceOptions& trace_options = {});

}  // namespace xccl
