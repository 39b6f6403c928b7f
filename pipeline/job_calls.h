// The calls of a job, from the logs of its ranks: each collective, size and number of ranks once.
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

// Calls of all communicators of so many ranks.
struct JobCall {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  int32_t ranks = 0;
  std::optional<Rank> root = {};  // by rank of the communicator
  int64_t size_bytes = 0;
  int64_t calls = 0;              // of one rank: the most of any
  std::optional<double> us = {};  // of one call: the mean over the ranks and calls with a time
  bool nccl_may_serve = false;    // NCCL serves it, or would where no plan does
};

// Communicators of one number of ranks.
struct JobGroups {
  int32_t ranks = 0;
  // The groups' ranks of the job, each sorted, the busiest group first; at least one.
  std::vector<std::vector<Rank>> members;
  bool known = true;  // false: no log says which ranks they are, so these are the first
  std::vector<std::string> warnings = {};
};

struct JobCalls {
  std::vector<JobCall> calls;         // by collective, ranks, root and size
  std::vector<JobGroups> groups;      // by number of ranks, the largest first
  int32_t ranks = 0;                  // of the job
  std::vector<std::string> warnings;  // of reading, and of calls that are left out
};

// Adds up the logs. Groups that no log names are found by the places of their ranks where those fit groups of
// neighbours or of every n-th rank. Errors: kInvalidInput where there is no call.
StatusOr<JobCalls> CallsOfJob(const JobLogs& logs);

// Reads the files of one job. Errors: those of reading and of CallsOfJob.
StatusOr<JobCalls> ReadJobCalls(const std::vector<std::string>& files);

}  // namespace xccl
