// Makes a plan book for the calls of a job, as its logs count them. Collectives, sizes and communicators that
// the job does not use get no plans.
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

// The calls of one collective, root and number of ranks at neighbouring sizes. They share a plan. The largest
// size is at most twice the least.
struct LogRow {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  int32_t ranks = 0;
  std::optional<Rank> root = {};
  int64_t min_bytes = 0, max_bytes = 0;  // least and largest size of the calls
  int64_t calls = 0;
  double share = 0;                        // share of the time of all calls; 0..1
  std::optional<double> measured_us = {};  // of one call; absent: the log has no times
  TunedRow ours = {};                      // at the size that takes most time; no file: not planned
  std::optional<Estimate> nccl = {};       // absent: no model of the collective or of the machine
  bool nccl_may_serve = true;              // NCCL may serve all calls of the row
  bool kept = false;                       // the plan is in the book
};

struct LogBook {
  std::vector<PlanBookEntry> entries;
  std::vector<Plan> plans;                // one for each file that entries name
  std::vector<LogRow> rows;               // by time spent, the most first
  std::vector<nccl_tuner::Row> steering;  // table for the tuner plugin
  std::vector<std::string> warnings;      // about groups, and about calls that no plan can serve
};

// Plans each row for the busiest group of its number of ranks, on the ranks of this group alone. A plan is
// kept in three cases: NCCL cannot serve the calls, because the C library makes them; NCCL has no model of
// their time; or NCCL's time is at least `least_gain` × the plan's time. `share` is a share of measured
// times, or else of predicted times. Alltoallv, sendrecv and other kinds whose counts no log has are not
// planned. Errors: kInvalidInput if the job has more ranks than the topology, or if no call can be planned;
// those of Tune. The `collectives` and `sizes_bytes` of `request` are ignored.
StatusOr<LogBook> MakeBookOfLog(const Topology& topology, const JobCalls& job, const TuneRequest& request,
                                double least_gain);

}  // namespace xccl::nccl
