// A Program as JSON: the `program` of a plan file. Format: docs/ir.md, Programs.
#pragma once

#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

// `schedule_cut`: the collective in the chunks of the schedule. A program that has other chunks says which.
void WriteProgramJson(const LoweredProgram& lowered, const Collective& schedule_cut, JsonWriter& writer);
// What comes back may be wrong in meaning: VerifyProgram tells. Errors: kInvalidInput naming the key.
StatusOr<LoweredProgram> ReadProgramJson(const JsonValue& value, const Collective& schedule_cut);

}  // namespace xccl
