// A plan as a picture, or as a trace of its simulation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "ir/plan.h"

namespace xccl {

enum class Drawing : uint8_t {
  kSvg,       // the schedule: steps on the machine, and a timeline of its links
  kDot,       // the machine, with the places of its nodes
  kPerfetto,  // every message and instruction, for ui.perfetto.dev
};

// At this size, or the one that the plan is made for. Programs run on the machine that the plan names, if
// any; times are those of `simulate`. A program that is too long to trace is left out of a trace, with a
// line in `notes`. Errors: those of TraceSchedule. Requires: a plan that verifies.
struct Drawn {
  std::string text;
  std::string note;
};
StatusOr<Drawn> DrawPlan(const Plan& plan, Drawing what, std::optional<int64_t> size_bytes);

}  // namespace xccl
