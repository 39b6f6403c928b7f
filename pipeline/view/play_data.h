// Writes how the page plays a program: its messages on links over time, and what ranks hold. The page
// describes the data as ScheduleData (view/src/view/data.ts).
#pragma once

#include "base/json/json_writer.h"
#include "ir/plan.h"
#include "ir/simulate/trace_program.h"
#include "pipeline/view/view.h"

namespace xccl::view {

// Writes the value of "played". `trace`: the trace of plan.program. Requires: the plan has a program.
void WritePlay(const Plan& plan, const ProgramTrace& trace, const ViewOptions& options, JsonWriter& json);

}  // namespace xccl::view
