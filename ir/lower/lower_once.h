// The list of passes, which make one program from a schedule in one form. The list has two halves, because
// forms differ only from the order of moves on: SplitOnce runs once for a schedule, and LowerOnce once for
// each form. lower.cc calls both halves; it also simulates and compares the programs.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/lower/forms.h"
#include "ir/lower/moves.h"
#include "ir/lower/order.h"
#include "ir/lower/paths.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "topologies/topology.h"

namespace xccl::lowering {

// A schedule without symmetry, in the chunks of its collective. All three must outlive the value.
struct ChunkedSchedule {
  const Schedule& schedule;
  const Collective& collective;
  const Topology& topology;
};

struct OnceOptions {
  int64_t size_bytes = 0;         // moves are timed and ordered for this size of the collective
  bool all_fan_ins = false;       // FindFanIns: `everywhere`
  bool limit_connections = true;  // refuse more connections of a rank than CheckConnections allows
  bool verify_passes = false;     // prove the result of every pass (verify_passes.h)
};

// The first half's result, which all forms of the schedule share.
struct SplitSchedule {
  Paths paths;
  MoveTimes times;  // of the moves, in the simulated schedule
  Moves moves;
};

// Runs the first half of the list. Errors: kInvalidInput if a program cannot express the schedule; kBug with
// verify_passes.
StatusOr<SplitSchedule> SplitOnce(const ChunkedSchedule& source, const OnceOptions& options);

// Runs the second half of the list. The program makes one pass of one instance; segments.h chooses other
// numbers. `ordered` holds the order of an earlier form of the schedule, or nothing. A form with another
// number of slots replaces it. Guarantees rules P1 to P9. Errors: as SplitOnce.
StatusOr<Program> LowerOnce(const ChunkedSchedule& source, const OnceOptions& options,
                            const SplitSchedule& split, const Form& form, std::optional<Ordered>& ordered);

}  // namespace xccl::lowering
