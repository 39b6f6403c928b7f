// Writes the schedule's part of the page: every message on every link or, if there are too many messages,
// sums over time, ranks and chunks. The page describes the data as ScheduleData (view/src/view/data.ts).
#pragma once

#include "base/json/json_writer.h"
#include "ir/plan.h"
#include "ir/simulate/trace.h"
#include "pipeline/view/view.h"

namespace xccl::view {

// Returns whether the page has an entry for every message, numbered as in the trace; otherwise it has sums.
bool ShowsMessages(const Plan& plan, const ScheduleTrace& trace, const ViewOptions& options);

// Writes the value of "schedule".
void WriteSchedule(const Plan& plan, const ScheduleTrace& trace, const ViewOptions& options,
                   JsonWriter& json);
// Writes the value of "schedule" for a schedule that cannot be traced, with the reason.
void WriteUntraced(const Plan& plan, const Simulation& simulation, const std::string& reason,
                   JsonWriter& json);

}  // namespace xccl::view
