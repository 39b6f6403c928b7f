// Computes how long a schedule takes on a topology: an event simulation of segments (pipelined) or messages
// (blocking) over links. The rules are in docs/ir.md. The cost does not grow with the number of segments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/units.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

struct MachineModel;  // ir/machine_model.h

// Chunks of at most this many bytes are not cut, and DefaultSegmentBytes makes no smaller segments
// (docs/ir.md, section 5).
inline constexpr int64_t kFineSegmentBytes = 64 << 10;

struct SimulateOptions {
  int64_t size_bytes = 64LL << 20;  // nccl-tests' size; rounded as ir/sizes.h says
  TimeModel model = TimeModel::kPipelined;
  // Pipelined: the largest slice of a chunk; 0 means DefaultSegmentBytes. Blocking: the largest slice of a
  // message; 0 means whole messages.
  int64_t segment_bytes = 0;
  bool record_links = false;  // fill Simulation::link_busy_ps; not for programs
  bool record_parts = false;  // fill Simulation::part_done_ps. Requires: a plain schedule
  bool rough = false;         // longer segments if there are many: faster, and overestimates a little
  bool extrapolate = true;    // false: run every segment, at a cost that grows with their number
  const MachineModel* machine = nullptr;  // for SimulateProgram; null: only links take time
  // For SimulateProgram: a program that takes longer may be left before its end; its time is then at least
  // kForeverPs.
  int64_t longest_ps = kForeverPs;
  Deadline deadline = Deadline();  // when it passes, the simulation stops
};

struct Simulation {
  int64_t time_ps = 0;   // last arrival; kForeverPs if stopped or unsound
  bool stopped = false;  // the deadline passed before the last arrival
  // Why the schedule cannot do its work: "step 3: rank 2 sends chunk 5, which it does not hold". Nothing was
  // run then, and time_ps is kForeverPs. Empty: every transfer starts, though the schedule may still be
  // wrong, which ir/verify tells.
  std::string unsound;
  int64_t size_bytes = 0;             // the real size, after rounding down
  int64_t segment_bytes = 0;          // as used
  std::vector<int64_t> link_busy_ps;  // by LinkId, if requested: time to carry its load, without stalls
  // By PartId, if requested: when the part's last byte has arrived everywhere it goes; 0 if it does not
  // move. If there are too many segments to run, the times of a shorter run are scaled.
  std::vector<int64_t> part_done_ps;
  double algbw_bytes_per_s() const {
    return time_ps > 0 ? static_cast<double>(size_bytes) * 1e12 / static_cast<double>(time_ps) : 0;
  }
};

// The default segment of the pipelined model. A largest chunk of at most 64 KiB is one segment. A larger
// one is cut so that filling the pipeline costs at most 1/64 of the busiest path's time. It is cut further
// while all segments together are at most 65,536. Segments have at least 64 KiB, and all together are at
// most 2^21, or 2^13 for each member if that is more, unless whole chunks are more. Depends only on its
// arguments. Requires: a plain schedule.
int64_t DefaultSegmentBytes(const Schedule& schedule, const Collective& collective, int64_t size_bytes);

// Returns the time of a schedule. A schedule in which a rank sends data that it does not hold is not run;
// Simulation::unsound says so. Requires: a normalized schedule. Cost: O(n log n) in transfers × chunks each
// moves × links of a path.
//
// A compressed schedule takes exactly the time of its plain form. It costs only as much as its columns if all
// translates of a chunk have the same bytes and no two translates of a transfer share a link. Otherwise the
// plain form is expanded. If that would exceed kMostTransfers, or 2^17 transfers on a machine of 4,096 ranks
// or more, the result is approximate: a link that translates share counts as that many times slower, and all
// translates of a chunk count as large as the first.
Simulation Simulate(const Schedule& schedule, const Collective& collective, const Topology& topology,
                    const SimulateOptions& options);

// When every chunk of every transfer leaves its source and has arrived; by transfer, then chunk. For an
// in-switch reduction the last source counts, for a multicast the last destination. In the pipelined model,
// with whole chunks as segments. Ranks may send data that they do not hold. Requires: a normalized, plain
// schedule. Cost: as Simulate.
struct MoveTimes {
  std::vector<int64_t> start_ps, arrival_ps;
};
MoveTimes SimulateMoves(const Schedule& schedule, const Collective& collective, const Topology& topology,
                        int64_t size_bytes);

}  // namespace xccl
