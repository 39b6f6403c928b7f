// How long a schedule takes on a topology: an event simulation of segments (pipelined) or messages (blocking)
// over links. The rules are in docs/ir.md; the cost does not grow with the number of segments.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

struct MachineModel;  // ir/machine_model.h

struct SimulateOptions {
  int64_t size_bytes = 64LL << 20;  // nccl-tests' size; rounded as ir/sizes.h says
  TimeModel model = TimeModel::kPipelined;
  int64_t segment_bytes = 0;  // pipelined: largest slice of a chunk; 0: DefaultSegmentBytes.
                              // blocking: largest slice of a message; 0: whole messages
  bool record_links = false;  // fill Simulation::link_busy_ps
  bool record_parts = false;  // fill Simulation::part_done_ps; plain schedules
  bool rough = false;         // longer segments where there are many: a quick look that ends a little late
  bool extrapolate = true;    // false: every segment is run, at a cost that grows with their number
  const MachineModel* machine = nullptr;  // SimulateProgram alone: what it adds; null: links are all
};

struct Simulation {
  int64_t time_ps = 0;                // last arrival
  int64_t size_bytes = 0;             // the real one
  int64_t segment_bytes = 0;          // as used
  std::vector<int64_t> link_busy_ps;  // by LinkId, when asked for: what the link carries, stalls excluded
  // By PartId, when asked for: when the part's last byte has arrived anywhere; 0 where it does not move.
  // Where there are too many segments to run them all, in proportion to those that are run.
  std::vector<int64_t> part_done_ps;
  double algbw_bytes_per_s() const {
    return time_ps > 0 ? static_cast<double>(size_bytes) * 1e12 / static_cast<double>(time_ps) : 0;
  }
};

// The segment used where none is given, for the pipelined model: at least 64 KiB, or a whole chunk when the
// largest is smaller; as large as it can be while filling the pipeline (steps beyond what the busiest path
// carries, in largest chunks) costs at most 1/64 of that path's time, or while all segments together are at
// least 65,536; all segments together are at most 2^21 where chunks are so few.
// Depends on its arguments alone. Requires: a plain schedule.
int64_t DefaultSegmentBytes(const Schedule& schedule, const Collective& collective, int64_t size_bytes);

// Requires: a normalized schedule that verifies. Cost: O(n log n) in transfers × chunks each moves × links of
// a path. A compressed schedule takes the time of its plain form, exactly, at the cost of its columns where
// all translates of a chunk have the same bytes and no two translates of a transfer share a link; otherwise
// the plain form is made. Where that is beyond kMostExpanded, links that translates share are taken to be so
// many times slower, and all translates of a chunk to have the bytes of the first.
Simulation Simulate(const Schedule& schedule, const Collective& collective, const Topology& topology,
                    const SimulateOptions& options);

// When every chunk of every transfer leaves its source, of an in-switch reduction the last one, and has
// arrived, of a multicast everywhere; pipelined and uncut; in order of transfer, then chunk. Requires: a
// normalized, plain schedule that verifies. Cost as Simulate.
struct MoveTimes {
  std::vector<int64_t> start_ps, arrival_ps;
};
MoveTimes SimulateMoves(const Schedule& schedule, const Collective& collective, const Topology& topology,
                        int64_t size_bytes);

}  // namespace xccl
