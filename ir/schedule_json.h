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
// What comes back has columns of equal length and may be wrong otherwise: VerifySchedule tells. Errors:
// kInvalidInput naming the key, also where a list of ranks is not the ends of its path.
StatusOr<Schedule> ReadScheduleJson(const JsonValue& value, const Topology& topology);

}  // namespace xccl
