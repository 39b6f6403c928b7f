// A Schedule as JSON: the `schedule` of a plan file. Format: docs/ir.md, Plan files.
#pragma once

#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "base/status.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// Requires: columns of equal length and paths of links that exist.
void WriteScheduleJson(const Schedule& schedule, const Topology& topology, JsonWriter& writer);
// The result has columns of equal length but may be wrong otherwise; VerifySchedule checks that. Errors:
// kInvalidInput naming the key, also if a list of ranks differs from the ends of its path.
StatusOr<Schedule> ReadScheduleJson(const JsonValue& value, const Topology& topology);

}  // namespace xccl
