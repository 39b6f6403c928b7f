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
// size is at most twice the least; sizes below the least size that is planned count as that size.
struct LogRow {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  int32_t ranks = 0;
  std::optional<Rank> root = {};
  int64_t min_bytes = 0, max_bytes = 0;  // least and largest size of the calls
  int64_t calls = 0;
  double share = 0;                        // share of the time of all calls; 0..1
  std::optional<double> measured_us = {};  // mean of the calls that have times; absent: none has
  TunedRow ours = {};                      // at the size of the row that takes most time
  std::optional<Estimate> nccl = {};       // absent: NCCL does not model the collective or machine
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
// kept in three cases: NCCL cannot serve all calls, because the C library makes some; NCCL has no model of
// their time; or NCCL's time is at least `least_gain` × the plan's time. `share` is a share of measured
// times, or else of predicted times. Sendrecv, barriers, user-defined collectives, kinds with counts such as
// alltoallv, calls of one rank, and sizes above kMaxSizeBytes are not planned. Errors: kInvalidInput if the
// job has more ranks than the topology, or if no call can be planned; those of Tune. The `collectives` and
// `sizes_bytes` of `request` are ignored.
StatusOr<LogBook> MakeBookOfLog(const Topology& topology, const JobCalls& job, const TuneRequest& request,
                                double least_gain);

}  // namespace xccl::nccl
