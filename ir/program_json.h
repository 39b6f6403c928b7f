// A Program as JSON: the `program` of a plan file. Format: docs/ir.md, Programs.
#pragma once

#include "base/status.h"
#include "ir/json_value.h"
#include "ir/json_writer.h"
#include "ir/program.h"

namespace xccl {

void WriteProgramJson(const Program& program, JsonWriter& writer);
// What comes back may be wrong in meaning: VerifyProgram tells. Errors: kInvalidInput naming the key.
StatusOr<Program> ReadProgramJson(const JsonValue& value);

}  // namespace xccl
