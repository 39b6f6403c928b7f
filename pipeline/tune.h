// Makes a plan book for one machine. Compares plans at every size, and keeps the fastest one for each size.
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
#include "pipeline/measure/repeat.h"
#include "pipeline/plan_result.h"
#include "runtime/plan_book.h"
#include "topologies/topology.h"

namespace xccl {

struct TuneRequest {
  std::vector<Collective> collectives;
  std::vector<int64_t> sizes_bytes;  // ascending
  PlanOptions pipeline;              // engine, machine model, limits; Tune sets size and lowering
  std::function<void(size_t done, size_t all)> on_collective = {};  // called after each collective
};

struct TunedRow {
  std::string collective, engine, file;
  std::string topology = {};      // the topology that the plan was made for
  std::optional<Rank> root = {};  // absent if the collective has no root
  int64_t size_bytes = 0;
  double measured_us = 0, predicted_us = 0;
  double spread = 0;         // of measured_us (pipeline/measure/repeat.h)
  int32_t samples = 1;       // of measured_us
  int32_t threadblocks = 0;  // CTAs of a rank
};

struct Tuned {
  std::vector<PlanBookEntry> entries;
  std::vector<Plan> plans;  // plans[i] is the plan of entries[i]
  std::vector<TunedRow> rows;
};

// Makes a plan for every size and chooses the fastest plan for each size by `measure`. Without `measure`, the
// predicted times decide and are stored as measured times. `topologies`: alternative descriptions of the same
// machine; plans are made for each of them. A size between two sizes of the list gets the plan of the nearer
// size, by ratio. With a machine model, a plan that is predicted to take over four times as long as the best
// plan is not run; without one, the measured times alone decide. Roots are alike if a symmetry of every
// topology maps them to each other. Alike roots get plans of one engine, unless only auto can make the plan.
// The engine is chosen by the sum of their times, so that noise gives no root another engine. Cost: at most
// sizes² measurements per collective and topology. Errors: those of MakePlan and `measure`; kLimit if a plan
// has no program.
StatusOr<Tuned> Tune(std::span<const Topology> topologies, const TuneRequest& request,
                     const Measure& measure);

// Returns the largest size that is no farther from `size_bytes` than from `next_bytes`, by ratio.
int64_t LastNearerTo(int64_t size_bytes, int64_t next_bytes);

// Writes the plans of a book, each to its entry's file, then machine.json, then the index. Without `machine`,
// removes a machine.json of an earlier book. The index comes last, so that an interrupted call writes no
// index. Requires that the directory exists.
Status WriteBook(const std::vector<PlanBookEntry>& entries, std::span<const Plan> plans,
                 const std::optional<MachineModel>& machine, const std::string& directory);

}  // namespace xccl
