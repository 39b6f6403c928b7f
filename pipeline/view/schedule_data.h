// The schedule's part of the page: every message on every link, or, where messages are too many, loads and
// holdings added up. view/src/view/data.ts: ScheduleData.
#pragma once

#include "base/json/json_writer.h"
#include "ir/plan.h"
#include "ir/simulate/trace.h"
#include "pipeline/view/view.h"

namespace xccl::view {

// Is there an entry on the page for every message, or are they added up? The page numbers messages as the
// trace does.
bool ShowsMessages(const Plan& plan, const ScheduleTrace& trace, const ViewOptions& options);

// Writes the value of "schedule".
void WriteSchedule(const Plan& plan, const ScheduleTrace& trace, const ViewOptions& options,
                   JsonWriter& json);
// The part of the page for a schedule that cannot be traced, with the reason.
void WriteUntraced(const Plan& plan, const Simulation& simulation, const std::string& reason,
                   JsonWriter& json);

}  // namespace xccl::view
