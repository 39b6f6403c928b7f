// Schedule → Program. lower_once.cc lists the passes in order; each pass has a header in this folder, which
// says what the pass guarantees. lower.cc searches for the best program that the passes make.
#pragma once

#include <cstdint>
#include <optional>

#include "base/deadline.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/lower/forms.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "topologies/topology.h"

namespace xccl {

struct LowerOptions {
  int64_t size_bytes = 64LL << 20;  // the size and the time model for which the program is made fast
  TimeModel model = TimeModel::kPipelined;
  // If set, programs are timed on this machine, and the protocol with the least time is chosen. If null, only
  // links take time, and the protocol is Simple. Must outlive the call.
  const MachineModel* machine = nullptr;
  std::optional<int32_t> max_blocks = {};  // the most threadblocks of one rank, in all instances
  bool fold = true;                        // false: the program keeps the schedule's chunks
  // For tests: the one form to make. Absent: the plainest that keeps the schedule's time, else the fastest.
  std::optional<lowering::Form> form = {};
  // LeastTime of the schedule, if the caller has computed it.
  std::optional<int64_t> least_ps = {};
  bool verify_passes = false;      // prove the result of every pass (ir/lower/verify_passes.h)
  Deadline deadline = Deadline();  // ends the search for a better form
};

// Returns the time in ps that a program of the schedule should keep: the simulated time of the schedule. With
// a machine model, links have the bandwidths that the machine reaches, and the launch is added. `links_ps` is
// the simulated time without a machine model, if the caller has computed it.
int64_t LeastTime(const Schedule& schedule, const Collective& collective, const Topology& topology,
                  const SimulateOptions& options, std::optional<int64_t> links_ps = {});

// Returns a program of the schedule that verifies. Waves (neighbouring chunks that take the same paths)
// become passes over one chunk, which takes far fewer instructions. They stay chunks only if the passes lose
// time and a program in the schedule's own chunks is faster. Multicasts and in-switch reductions become
// groups, unless a program of chains is faster. Requires a normalized schedule that verifies. Errors: kLimit
// if the schedule has more than kMostTransfers transfers in plain form, or if the deadline passes before
// there is any program; kInvalidInput if a Program cannot express the schedule; with verify_passes kBug, with
// the pass and the violation.
StatusOr<LoweredProgram> LowerFolded(const Schedule& schedule, const Collective& collective,
                                     const Topology& topology, const LowerOptions& options = {});

struct TimedProgram {
  LoweredProgram program;
  std::optional<int64_t> time_ps;  // by SimulateProgram; absent: the program was not simulated
};

// Returns the program of LowerFolded, and its time if the search has simulated it.
StatusOr<TimedProgram> LowerTimed(const Schedule& schedule, const Collective& collective,
                                  const Topology& topology, const LowerOptions& options = {});

}  // namespace xccl
