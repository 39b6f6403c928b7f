// The list of passes: one schedule in one form becomes one program. The list has two halves, since forms
// differ only from the order of moves on: SplitOnce runs once for a schedule, LowerOnce once for each form.
// Neither half simulates a program or compares programs; lower.cc does, and calls both.
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

// First half of the list. Errors: kInvalidInput where a program cannot say what the schedule says; kBug with
// verify_passes.
StatusOr<SplitSchedule> SplitOnce(const ChunkedSchedule& source, const OnceOptions& options);

// Second half of the list. The program makes one pass of one instance (segments.h chooses others). `ordered`
// holds the order of an earlier form of the schedule, or nothing; a form with another number of slots
// replaces it. Guarantees rules P1 to P9. Errors: as SplitOnce.
StatusOr<Program> LowerOnce(const ChunkedSchedule& source, const OnceOptions& options,
                            const SplitSchedule& split, const Form& form, std::optional<Ordered>& ordered);

}  // namespace xccl::lowering
