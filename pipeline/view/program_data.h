// Writes the program's part of the page: what each threadblock does, and what it waits for. The page
// describes the data as ProgramData and CriticalData (view/src/view/data.ts).
#pragma once

#include <vector>

#include "base/json/json_writer.h"
#include "ir/program.h"
#include "ir/simulate/critical_path.h"
#include "ir/simulate/trace_program.h"
#include "pipeline/view/view.h"

namespace xccl::view {

// Writes the value of "program". If the program has more instructions or passes than the page can hold,
// writes only some ranks; the ranks of the critical path have priority.
void WriteProgram(const LoweredProgram& lowered, const ProgramTrace& trace, const ViewOptions& options,
                  JsonWriter& json);

// Writes a critical path. `program`: the program whose threadblocks the path names; null if the path is that
// of a schedule. `with_messages`: the page lists the messages that the path names.
void WriteCritical(const CriticalPath& path, const Program* program, bool with_messages, JsonWriter& json);

}  // namespace xccl::view
