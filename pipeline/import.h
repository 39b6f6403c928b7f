// Imports plans of other tools: reads the file, proves the plan and puts it on a machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "interchange/common/foreign.h"
#include "ir/plan.h"
#include "pipeline/plan_result.h"
#include "topologies/topology.h"

namespace xccl {

struct ImportedPlan {
  Imported from;
  Plan plan;
  std::vector<std::string> warnings = {};
};

// Reads the plan in the file `path`. Error messages begin with `path`. The file holds either a program or a
// list of sends. Sends are lowered for the size and machine model of `lowering`; the plan keeps the name of
// the model. Without `machine`, the plan is for a full mesh of its ranks. If the machine has no switch for a
// multicast or an in-switch reduction of the file, the plan does the same rank by rank. Errors: those of
// ReadForeign (interchange/import.h), PlaceOnMachine (interchange/place.h), ReadPrintedSends
// (interchange/traces/printed_sends.h) and ImportSends (pipeline/import_sends.h); kLimit if sends get no
// program.
StatusOr<ImportedPlan> ImportPlan(const std::string& path, ImportOptions options,
                                  const std::optional<Topology>& machine, const PlanOptions& lowering);

}  // namespace xccl
