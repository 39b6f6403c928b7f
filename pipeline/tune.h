// Makes a plan book for one machine: runs every plan that `auto` proposes, at every size. The plan that ran
// fastest serves each size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/machine_model.h"
#include "ir/plan.h"
#include "pipeline/measure/machine.h"
#include "pipeline/plan_result.h"
#include "runtime/plan_book.h"
#include "topologies/topology.h"

namespace xccl {

struct TuneRequest {
  std::vector<Collective> collectives;
  std::vector<int64_t> sizes_bytes;  // ascending
  PlanOptions pipeline;              // engine, machine, limits; size and lowering are set here
  std::function<void(size_t done, size_t all)> on_collective = {};  // called when a collective has ended
};

struct TunedRow {
  std::string collective, engine, file;
  std::string topology = {};      // the topology that the plan was made for
  std::optional<Rank> root = {};  // only rooted collectives have one
  int64_t size_bytes = 0;
  double measured_us = 0, predicted_us = 0;
  int32_t threadblocks = 0;  // CTAs of a rank
};

struct Tuned {
  std::vector<PlanBookEntry> entries;
  std::vector<Plan> plans;  // by entry
  std::vector<TunedRow> rows;
};

// A size between two sizes of the list is served by the plan of the nearer one, by ratio. A plan whose
// predicted time is over four times the best one is not run. Cost: at most sizes² runs per collective.
// Errors: those of MakePlan and `measure`. Without `measure` the predicted times decide, and stand for
// measured ones. `topologies`: descriptions of the one machine, each of which proposes plans.
StatusOr<Tuned> Tune(std::span<const Topology> topologies, const TuneRequest& request,
                     const Measure& measure);

// The largest size that is nearer to the first of two, by ratio.
int64_t LastNearerTo(int64_t size_bytes, int64_t next_bytes);

// Writes the plans of a book, each under its entry's file, and machine.json; the index last. A book that is
// cut short thus has no index and is not a book. Requires: the directory.
Status WriteBook(const std::vector<PlanBookEntry>& entries, std::span<const Plan> plans,
                 const MachineModel& machine, const std::string& directory);

}  // namespace xccl
