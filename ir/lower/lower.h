// Schedule → Program. lower.cc lists the passes in order; each is a header of its own in this folder, which
// says what it guarantees.
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
  int64_t size_bytes = 64LL << 20;  // the size and the model that the program is made fast for
  TimeModel model = TimeModel::kPipelined;
  // Given, it has a say in the choice of the protocol; else that is simple. Must outlive the call.
  const MachineModel* machine = nullptr;
  std::optional<int32_t> max_blocks = {};  // threadblocks of one rank, all instances
  bool fold = true;                        // false: the program keeps the schedule's chunks
  // For tests: the one form to make. Else it is the plainest that keeps the schedule's time, by simulation.
  std::optional<lowering::Form> form = {};
  // LeastTime of the schedule, where the caller has it.
  std::optional<int64_t> least_ps = {};
  bool verify_passes = false;      // prove the result of every pass (ir/lower/verify_passes.h)
  Deadline deadline = Deadline();  // ends the search for a better form
};

// What no program of a schedule is wanted to beat, in ps: the schedule's simulated time; with a machine model
// on the bandwidths that links reach, after the launch. `links_ps`: the time on the topology's own, where the
// caller has it.
int64_t LeastTime(const Schedule& schedule, const Collective& collective, const Topology& topology,
                  const SimulateOptions& options, std::optional<int64_t> links_ps = {});

// Waves of neighbouring chunks that take the same paths are folded into passes over one chunk, a program of
// far fewer instructions, where that keeps the schedule's time or is the faster. Multicasts and in-switch
// reductions become groups, unless they are faster as one rank after the other. The result verifies.
// Requires: a normalized schedule that verifies. Errors: kLimit beyond kMostExpanded transfers; kInvalidInput
// where a Program cannot say what the schedule says; kLimit where the deadline passes
// before there is any program; with verify_passes kBug, naming pass and violation.
StatusOr<LoweredProgram> LowerFolded(const Schedule& schedule, const Collective& collective,
                                     const Topology& topology, const LowerOptions& options = {});

struct TimedProgram {
  LoweredProgram program;
  std::optional<int64_t> time_ps;  // as SimulateProgram; absent: it was not simulated
};
// Likewise, with what the search for a form found out.
StatusOr<TimedProgram> LowerTimed(const Schedule& schedule, const Collective& collective,
                                  const Topology& topology, const LowerOptions& options = {});

}  // namespace xccl
