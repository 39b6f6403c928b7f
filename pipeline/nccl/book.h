// A plan book to use beside NCCL on a machine. It has the plans that are faster than NCCL's own choice by
// NCCL's own model, and a table that steers NCCL where another of NCCL's algorithms is faster.
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
  bool kept = false;  // it is in the book
};
struct Book {
  std::vector<PlanBookEntry> entries;
  std::vector<Plan> plans;                // by file, each once
  std::vector<BookRow> rows;              // every collective and size
  std::vector<nccl_tuner::Row> steering;  // for the tuner plugin
};

// A plan is kept for the sizes at which NCCL's time is at least `least_gain` times its predicted one, and for
// the sizes between two of them; beyond the last size NCCL decides. A row of `steering` is where the
// simulation of NCCL's rings, and of its trees where hosts have one GPU, says that another of them is as much
// faster than the one that NCCL chooses. Errors: those of FindGraphs and Tune, and kInvalidInput for a
// collective that NCCL has no model of. Requires: request.pipeline.machine.
StatusOr<Book> MakeBook(const Topology& topology, const TuneRequest& request, double least_gain);

// The options of a book's plans: with the machine of the topology's GPUs where they name none. Errors:
// kInvalidInput where there is none, or where NCCL has no tables for these GPUs.
StatusOr<PlanOptions> OptionsOfBook(const Topology& topology, const PlanOptions& options);

// Writes the plans, and for NCCL's tuner nccl-tuner.table. Requires: the directory.
Status WriteBookAndTable(const Book& book, const MachineModel& machine, const std::string& directory);

}  // namespace xccl::nccl
