// The simulation of a program, written down: when each instruction runs and what it waits for, when messages
// are on links, and why it takes as long as it does. The times are exactly SimulateProgram's. If it
// extrapolates a steady state, each row's time is extrapolated in the same way. Trace of a schedule: trace.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/simulate/critical_path.h"
#include "ir/simulate/simulate.h"
#include "topologies/topology.h"

namespace xccl {

// The reasons for which an instruction waits, in the order in which it waits for them.
enum class ProgramWait : uint8_t {
  kNothing,      // its threadblock was busy with the instruction before it
  kThreadblock,  // an instruction of another threadblock
  kHandOff,      // the machine's time from that instruction until this one may go on
  kMessage,      // the arrival of a message
  kSlot,         // a free slot of its connection
  kLink,         // a send waits while the link out of its rank carries something else
};
inline constexpr size_t kNumProgramWaits = 6;
std::string_view ToString(ProgramWait wait);  // "message"

// One instruction, all passes and instances together.
struct TracedInstruction {
  int64_t start_ps = 0;  // the first pass begins, its waits over
  int64_t end_ps = 0;    // the last pass is done
  int64_t busy_ps = 0;   // sum over passes, from begin to end; passes of different instances may overlap
  std::array<int64_t, kNumProgramWaits> waits_ps = {};  // sums over passes, by ProgramWait
};

// One instruction in one pass.
struct TracedPass {
  int32_t node = 0;  // ir/analysis/program_index.h
  int32_t pass = 0;
  int64_t reached_ps = 0;  // its threadblock has nothing else to do
  int64_t start_ps = 0, end_ps = 0;
  ProgramWait waited_for = ProgramWait::kNothing;  // its last wait before it began
};

// One message on one link.
struct TracedProgramHop {
  int32_t node = 0, pass = 0;  // the instruction that sent it; of a sum in a switch, the one that came last
  LinkId link;
  int64_t start_ps = 0, end_ps = 0;
};

struct ProgramTrace {
  Simulation simulation;  // as SimulateProgram returns it
  int32_t passes = 1;
  int32_t ran_passes = 1;  // passes of the longest run; fewer where times are extrapolated
  std::vector<TracedInstruction> instructions;  // by node
  // By start. Empty if times are extrapolated or there are too many.
  std::vector<TracedPass> slices;
  std::vector<TracedProgramHop> hops;
  std::vector<int64_t> link_busy_ps;  // by LinkId: time that it was occupied
  CriticalPath critical_path;         // its messages are not numbered
};

struct ProgramTraceOptions {
  int64_t most_slices = 1 << 18;  // of `slices`, and of `hops`; if either has more, both are left empty
  int64_t most_events = 1 << 22;  // instructions, and messages × links, in all passes of the longest run
};

// Returns the trace. Requires: as SimulateProgram. Cost: twice SimulateProgram's, and memory for the events
// of its longest run. Errors: as SimulateProgram; kLimit if there are more than most_events events.
StatusOr<ProgramTrace> TraceProgram(const Program& program, const Collective& collective,
                                    const Topology& topology, const SimulateOptions& options,
                                    const ProgramTraceOptions& trace_options = {});

}  // namespace xccl
