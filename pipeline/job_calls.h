// Adds up the calls of a job from the logs of its ranks. Each combination of collective, root, size and
// number of ranks is listed once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "interchange/traces/calls.h"
#include "ir/collective.h"

namespace xccl {

// The calls of one collective, root and size on all communicators with the same number of ranks.
struct JobCall {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  int32_t ranks = 0;
  std::optional<Rank> root = {};  // as a rank of the communicator
  int64_t size_bytes = 0;
  int64_t calls = 0;              // the most that any one rank has made
  std::optional<double> us = {};  // mean time of a call, over the ranks and calls with a time
  bool nccl_may_serve = false;    // the caller uses NCCL, which serves the call if no plan does
};

// The groups of ranks whose communicators have the same number of ranks.
struct JobGroups {
  int32_t ranks = 0;
  // For each group its ranks of the job, sorted; at least one group. If logs name the ranks, the busiest
  // group comes first.
  std::vector<std::vector<Rank>> members;
  bool known = true;  // false: the ranks are not known; the job's first ranks are taken
  std::vector<std::string> warnings = {};
};

struct JobCalls {
  std::vector<JobCall> calls;         // by collective, ranks, root and size
  std::vector<JobGroups> groups;      // by number of ranks, the largest first
  int32_t ranks = 0;                  // of the job
  std::vector<std::string> warnings;  // of reading, and of calls that are left out
};

// Adds up the logs. If the logs name no group with some number of ranks, each rank's numbers in the job and
// in the communicator are used: groups of neighbours, or of every n-th rank, are taken if only one n fits.
// Errors: kInvalidInput if there is no call.
StatusOr<JobCalls> CallsOfJob(const JobLogs& logs);

// Reads the files of one job. Errors: those of reading and of CallsOfJob.
StatusOr<JobCalls> ReadJobCalls(const std::vector<std::string>& files);

}  // namespace xccl
