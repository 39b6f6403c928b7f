// Plans of other tools: read, proved, and put on a machine.
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

// Reads the file at `path`, which also opens messages. The file has a program, or sends, which are lowered
// for the size and machine of `lowering`. Without a machine, the plan is for a full mesh of its ranks.
// Multicasts and sums in switches are done rank by rank where the machine has no switch that can. Errors:
// those of ReadForeign (interchange/import.h), PlaceOnMachine (interchange/place.h), ReadPrintedSends
// (interchange/traces/printed_sends.h) and ImportSends (pipeline/import_sends.h).
StatusOr<ImportedPlan> ImportPlan(const std::string& path, ImportOptions options,
                                  const std::optional<Topology>& machine, const PlanOptions& lowering);

}  // namespace xccl
