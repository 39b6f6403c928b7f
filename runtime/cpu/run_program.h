// Runs a program on this host's CPU and checks every element, for `xccl-synth run`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "runtime/launched/launched_group.h"
#include "runtime/run_row.h"
#include "runtime/run_table.h"
#include "runtime/transport/wiring.h"
#include "topologies/topology.h"

namespace xccl {

struct CpuRunOptions {
  WiringOptions wiring = {};
  // Bytes of all buffers and slots; absent: nine tenths of what is free.
  std::optional<int64_t> memory_limit = {};
  // Set: this process runs its own rank alone, and the others run theirs. Rows are the same on all.
  LaunchedGroup* group = nullptr;
  const Topology* topology = nullptr;  // names the network devices of the program's connections; may be null
};

// A row for each of RunTable's cases; ranks are threads or processes, of this host or of a group's hosts.
// Errors: kInvalidInput when memory does not suffice, with what is needed; what RunTable, RunRanks and
// ExecuteRank say. Requires: the program verifies.
StatusOr<std::vector<RunRow>> RunProgram(const Program& program, const Collective& collective,
                                         const RunOptions& options, const CpuRunOptions& cpu = {});

}  // namespace xccl
