// Draws a plan as a picture, or writes it as a trace of its simulation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "ir/plan.h"

namespace xccl {

enum class Drawing : uint8_t {
  kSvg,       // the schedule: steps on the machine, and a timeline of its links
  kDot,       // the machine, with the positions of its nodes
  kPerfetto,  // every message and instruction, for ui.perfetto.dev
};

struct Drawn {
  std::string text;
  std::string note;  // what is left out, and why; empty: nothing is left out
};
// Draws the plan at `size_bytes`; if absent, at the size that the plan was made for. A trace (kPerfetto) also
// has the plan's program, if any, as simulated on the known machine model that the plan names, or on links
// alone. If the program cannot be traced, the trace has only the schedule, and `note` says why. Errors: those
// of TraceSchedule and LowerBound. Requires: a plan that verifies.
StatusOr<Drawn> DrawPlan(const Plan& plan, Drawing what, std::optional<int64_t> size_bytes);

}  // namespace xccl
