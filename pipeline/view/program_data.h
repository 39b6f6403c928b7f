// The program's part of the page: what each threadblock does, and what it waits for. view/src/view/data.ts:
// ProgramData, CriticalData.
#pragma once

#include <vector>

#include "base/json/json_writer.h"
#include "ir/program.h"
#include "ir/simulate/critical_path.h"
#include "ir/simulate/trace_program.h"
#include "pipeline/view/view.h"

namespace xccl::view {

// Writes the value of "program". A program with more instructions or passes than the page takes is there for
// some ranks, and the ranks of its critical path come first.
void WriteProgram(const LoweredProgram& lowered, const ProgramTrace& trace, const ViewOptions& options,
                  JsonWriter& json);

// Writes a critical path. `program` is that of the path's threadblocks; null: it is a schedule's.
// `with_messages`: the page has the messages that the path names.
void WriteCritical(const CriticalPath& path, const Program* program, bool with_messages, JsonWriter& json);

}  // namespace xccl::view
