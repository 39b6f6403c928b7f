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

// Draws the plan at this size, or at the size that it is made for. Programs run on the machine that the plan
// names, if any, and take the times that `simulate` shows. A program that is too long to trace is left out,
// and `note` says so. Errors: those of TraceSchedule. Requires: a plan that verifies.
struct Drawn {
  std::string text;
  std::string note;  // says what is left out, and why; empty: nothing
};
StatusOr<Drawn> DrawPlan(const Plan& plan, Drawing what, std::optional<int64_t> size_bytes);

}  // namespace xccl
