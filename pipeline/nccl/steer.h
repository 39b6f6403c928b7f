// Makes the rows of the tuner plugin's table from measured or simulated times. A row names the sizes at which
// another algorithm and protocol is faster than NCCL's own choice.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/nccl/tuner/table.h"

namespace xccl::nccl {

struct Choosing {
  nccl_tuner::Algorithm algorithm = nccl_tuner::Algorithm::kRing;
  nccl_tuner::Protocol protocol = nccl_tuner::Protocol::kSimple;
  std::optional<int> channels = {};
  bool operator==(const Choosing&) const = default;
};
// A size, and the choice that is better at this size than NCCL's own; absent if no choice is better.
struct Better {
  int64_t bytes = 0;
  std::optional<Choosing> choice;
};
// Appends a row for every run of neighbouring sizes with the same choice. The choice of the first size also
// holds for all smaller sizes. NCCL decides at sizes that no row covers: beyond the last size, between two
// rows, and at sizes without a choice. Requires ascending sizes.
void AddRows(nccl_tuner::Collective collective, int64_t nodes, int64_t ranks, std::span<const Better> sizes,
             std::vector<nccl_tuner::Row>& rows);

// A run of nccl-tests.
struct TestRun {
  nccl_tuner::Collective collective = nccl_tuner::Collective::kAllreduce;
  int64_t ranks = 0, nodes = 0;
  std::optional<Choosing> forced;  // what NCCL_ALGO and NCCL_PROTO force; absent: NCCL's own choice
  struct Time {
    int64_t bytes = 0;
    double us = 0;  // time out of place
  };
  std::vector<Time> times;
};
// Reads the JSON file that nccl-tests writes with -J (interchange/traces/nccl_tests.h). The run must set both
// NCCL_ALGO and NCCL_PROTO, each to one name, or neither. If it sets NCCL_MIN_NCHANNELS or
// NCCL_MAX_NCHANNELS, it must set all four variables, and these two to the same number. Errors: kInvalidInput
// with the file and the key.
StatusOr<TestRun> ReadTestRun(std::string_view text, const std::string& file);

// Returns the rows for sizes at which a forced choice is at least `least_gain` times as fast as NCCL's own
// choice for the same collective, hosts and ranks. Errors: kInvalidInput if such a group has forced runs but
// no run of NCCL's own choice.
StatusOr<std::vector<nccl_tuner::Row>> Steer(std::span<const TestRun> runs, double least_gain);
// Reads files of nccl-tests and calls Steer. Errors: those of ReadTestRun and Steer, and of reading.
StatusOr<std::vector<nccl_tuner::Row>> SteerByFiles(std::span<const std::string> files, double least_gain);

}  // namespace xccl::nccl
