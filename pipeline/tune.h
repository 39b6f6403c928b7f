// Makes a plan book for one machine. First it measures what a message costs there, then every plan that
// `auto` proposes, at every size. The plan that ran fastest serves each size.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/machine_model.h"
#include "ir/plan.h"
#include "pipeline/pipeline.h"
#include "runtime/plan_book.h"
#include "topologies/topology.h"

namespace xccl {

// Runs a program at an nccl-tests size and checks it; returns the microseconds of one operation.
using Measure = std::function<StatusOr<double>(const LoweredProgram& lowered, int64_t size_bytes)>;

// Measures launch, hop, message and a threadblock's rate for each protocol. Programs move data over one and
// three hops between the first ranks: a line through t = launch + message + hops × (message + hop), a row of
// messages, and one large message. The topology's latency from rank 0 to rank 1 is taken off the hops.
// Hand-offs, NVLinks and NICs are not measured: the model adds nothing for them. `flags_travel`: LL and LL128
// put flags beside the data. Requires: ranks >= 2. Errors: those of `measure`.
StatusOr<MachineModel> MeasureMachine(const Topology& topology, const std::string& source, bool flags_travel,
                                      const Measure& measure);

struct TuneRequest {
  std::vector<Collective> collectives;
  std::vector<int64_t> sizes_bytes;  // ascending
  PlanOptions pipeline;              // engine, machine, limits; size and lowering are set here
};

struct TunedRow {
  std::string collective, engine, file;
  std::string topology = {};      // whose plan it is
  std::optional<Rank> root = {};  // of rooted collectives
  int64_t size_bytes = 0;
  double measured_us = 0, predicted_us = 0;
  int32_t threadblocks = 0;  // CTAs of a rank
};

struct Tuned {
  std::vector<PlanBookEntry> entries;
  std::vector<Plan> plans;  // by entry
  std::vector<TunedRow> rows;
};

// A size between two of the list is served as the nearer one, by ratio. A plan that is predicted to be four
// times slower than the best is not run. Cost: at most sizes² runs per collective. Errors: those of MakePlan
// and `measure`.
// `topologies`: descriptions of the one machine, each of which proposes plans.
StatusOr<Tuned> Tune(std::span<const Topology> topologies, const TuneRequest& request,
                     const Measure& measure);

}  // namespace xccl
