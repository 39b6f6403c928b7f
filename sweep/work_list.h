// The work list of a sweep: a text in which every line is a `plan` command with several values for each
// option, and stands for all combinations of them.
//
//   # comment
//   dgx-a100 torus:4x4 -c allreduce allgather -s 1KiB:64MiB:x16 -e auto ring --seed 1 2 --time-limit 10s
//
// Words are separated by blanks. Topologies come first. An option that `plan` takes several times may be
// given several times: each is its own list. One option is not `plan`'s: --program lowers the plans to
// programs and times those as well. Docs: docs/sweep.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace xccl {

// One plan to make. The five values together name the job, in the list and in tables.
struct SweepJob {
  std::string topology = {};    // as `plan` takes it
  std::string collective = {};  // empty: --collective-file is among the options
  int64_t size_bytes = 0;
  std::string engine = {};
  std::string options = {};  // the other flags of `plan`: "--seed=3 --model=blocking"

  bool operator==(const SweepJob&) const = default;
};

// The words that make xccl-synth plan the job.
std::vector<std::string> PlanArguments(const SweepJob& job);

// The jobs in the order of the list: the last option of a line varies fastest, then the one before. A job
// that is listed twice is one job. `file` is the name shown in errors. Errors: kInvalidInput as FILE:LINE.
StatusOr<std::vector<SweepJob>> ParseWorkList(std::string_view text, const std::string& file);
// Errors: also the errors of reading the file.
StatusOr<std::vector<SweepJob>> ReadWorkList(const std::string& file);

// The options that a list may have: "--collective".
std::vector<std::string_view> WorkListFlags();

}  // namespace xccl
