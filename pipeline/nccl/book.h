// Makes a plan book that is used together with NCCL on a machine. The book holds the plans that are faster
// than NCCL's choice; the time of NCCL's choice comes from NCCL's own model. The book also has a table that
// makes NCCL choose another of its algorithms where that is faster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "pipeline/nccl/model.h"
#include "pipeline/tune.h"
#include "runtime/nccl/tuner/table.h"

namespace xccl::nccl {

struct BookRow {
  TunedRow ours;
  Estimate nccl;
  bool kept = false;  // the plan is in the book for this size
};
struct Book {
  std::vector<PlanBookEntry> entries;
  std::vector<Plan> plans;                // one for each file that entries name, without duplicates
  std::vector<BookRow> rows;              // one for each collective and size
  std::vector<nccl_tuner::Row> steering;  // table for the tuner plugin
};

// Makes the book. A plan is kept for each size at which NCCL's time is at least `least_gain` × the plan's
// predicted time. A size between two neighbouring kept sizes gets the plan of the nearer one. If the least
// size is kept, its plan also serves all smaller sizes. NCCL decides at all other sizes. A row of `steering`
// covers sizes at which another algorithm or protocol of NCCL is at least `least_gain` times as fast as
// NCCL's choice. For this, NCCL's rings are simulated, and NCCL's trees if every host has one GPU. Errors:
// those of FindGraphs and Tune, and kInvalidInput for a collective that NCCL does not model. Requires:
// request.pipeline.machine.
StatusOr<Book> MakeBook(const Topology& topology, const TuneRequest& request, double least_gain);

// Appends the rows of MakeBook's `steering` for one collective. Requires: NCCL has a model of it.
void SteerBySimulation(const Topology& topology, const Collective& collective, const TuneRequest& request,
                       const Graphs& graphs, double least_gain, std::vector<nccl_tuner::Row>& steering);

// Returns the options for the book's plans. If `options` has no machine, fills in the machine model of the
// topology's GPUs. Errors: kInvalidInput if there is no such model, or if NCCL has no tables for these GPUs.
StatusOr<PlanOptions> OptionsOfBook(const Topology& topology, const PlanOptions& options);

// Writes the plan book, and nccl-tuner.table for the tuner plugin. Requires that the directory exists.
Status WriteBookAndTable(const Book& book, const MachineModel& machine, const std::string& directory);

}  // namespace xccl::nccl
