// Rows of the tuner's table from times: the sizes at which another algorithm and protocol is faster than
// NCCL's own choice.
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
// An algorithm and protocol that are better than NCCL's own choice at a size; absent: none is.
struct Better {
  int64_t bytes = 0;
  std::optional<Choosing> choice;
};
// Appends a row for every run of sizes with one choice. The first size stands for smaller ones too; beyond
// the last one NCCL decides. Requires: ascending sizes.
void AddRows(nccl_tuner::Collective collective, int64_t nodes, int64_t ranks, std::span<const Better> sizes,
             std::vector<nccl_tuner::Row>& rows);

// A run of nccl-tests.
struct TestRun {
  nccl_tuner::Collective collective = nccl_tuner::Collective::kAllreduce;
  int64_t ranks = 0, nodes = 0;
  std::optional<Choosing> forced;  // by NCCL_ALGO and NCCL_PROTO; absent: NCCL's own choice
  struct Time {
    int64_t bytes = 0;
    double us = 0;  // out of place
  };
  std::vector<Time> times;
};
// Reads what nccl-tests writes with -J (interchange/traces/nccl_tests.h). NCCL_ALGO and NCCL_PROTO, both or
// neither, name one each; NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS are equal where one is given. Errors:
// kInvalidInput with the file and the key.
StatusOr<TestRun> ReadTestRun(std::string_view text, const std::string& file);

// Rows where a forced choice is at least `least_gain` times as fast as NCCL's own on the same ranks. Errors:
// kInvalidInput where a forced run has none of NCCL's own beside it.
StatusOr<std::vector<nccl_tuner::Row>> Steer(std::span<const TestRun> runs, double least_gain);
// Reads files of nccl-tests and steers by them. Errors: those of ReadTestRun, and of reading.
StatusOr<std::vector<nccl_tuner::Row>> SteerByFiles(std::span<const std::string> files, double least_gain);

}  // namespace xccl::nccl
