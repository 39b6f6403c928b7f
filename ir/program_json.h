// A Program as JSON: the `program` of a plan file. Format: docs/ir.md, Programs.
#pragma once

#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

// `schedule_cut` is the collective in the schedule's chunks. If the program has other chunks, they are
// written, too.
void WriteProgramJson(const LoweredProgram& lowered, const Collective& schedule_cut, JsonWriter& writer);
// The result may be wrong in meaning; VerifyProgram checks that. Errors: kInvalidInput naming the key.
StatusOr<LoweredProgram> ReadProgramJson(const JsonValue& value, const Collective& schedule_cut);

}  // namespace xccl
