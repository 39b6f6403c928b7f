// Makes a plan book for the calls of a job, as its logs count them: the collectives, sizes and communicators
// that it has, and no others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "pipeline/job_calls.h"
#include "pipeline/nccl/model.h"
#include "pipeline/tune.h"
#include "runtime/nccl/tuner/table.h"

namespace xccl::nccl {

// Neighbouring sizes of one collective, root and number of ranks, which share a plan: the largest is at most
// twice the least.
struct LogRow {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  int32_t ranks = 0;
  std::optional<Rank> root = {};
  int64_t min_bytes = 0, max_bytes = 0;  // of the calls
  int64_t calls = 0;
  double share = 0;                        // of the time of all calls; 0..1
  std::optional<double> measured_us = {};  // of one call, where the log has times
  TunedRow ours = {};                      // for the size with the most time; no file: not planned
  std::optional<Estimate> nccl = {};       // absent: NCCL has no model of it, or of the machine
  bool nccl_may_serve = true;              // every call of it
  bool kept = false;                       // the plan is in the book
};

struct LogBook {
  std::vector<PlanBookEntry> entries;
  std::vector<Plan> plans;                // one for each file that entries name
  std::vector<LogRow> rows;               // by time spent, the most first
  std::vector<nccl_tuner::Row> steering;  // table for the tuner plugin
  std::vector<std::string> warnings;      // of groups, and of calls that no plan can serve
};

// Plans each row on the ranks of its groups alone, for the busiest group. A plan is kept where NCCL cannot
// serve the calls, since they are the C library's; where NCCL has no model of their time; or where NCCL's
// time is at least `least_gain` × the plan's. `share` is of the measured times, or else of the predicted
// ones. Alltoallv, sendrecv and the like are not planned, since a log does not have their counts. Errors:
// kInvalidInput where the job has more ranks than the topology, or where no call can be planned; those of
// Tune. `request`: `collectives` and `sizes_bytes` are ignored.
StatusOr<LogBook> MakeBookOfLog(const Topology& topology, const JobCalls& job, const TuneRequest& request,
                                double least_gain);

}  // namespace xccl::nccl
