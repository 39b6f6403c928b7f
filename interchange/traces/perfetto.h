// Traces of simulations in Chrome's trace event format (JSON), which ui.perfetto.dev and chrome://tracing
// open: links, ranks and threadblocks as tracks, messages and instructions as slices, arrows from where a
// message is sent to where it arrives, and the critical path as a track of its own. Times are microseconds
// with six decimals, that is whole picoseconds. docs/interchange.md.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/program.h"
#include "ir/simulate/trace.h"
#include "ir/simulate/trace_program.h"
#include "topologies/topology.h"

namespace xccl {

struct TraceLabels {
  std::string title;    // "allreduce of 64MiB on dgx1, by forest"
  std::string model;    // "pipelined"
  std::string machine;  // whose costs the program's times include; empty: links alone
  std::string version;
};

// Writes the trace of a schedule and, unless null, that of a program. Messages on one track that are there
// at the same time go to tracks beside it. Requires: a program with its trace, or neither. Cost: n log n in
// the rows of the traces.
void WritePerfetto(const Topology& topology, const ScheduleTrace& trace, const Program* program,
                   const ProgramTrace* program_trace, const TraceLabels& labels, std::ostream& out);

}  // namespace xccl
