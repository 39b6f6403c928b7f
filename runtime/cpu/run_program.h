// Runs a program on this host's CPU and checks every element: what `xccl-synth run` does.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "runtime/run_row.h"
#include "runtime/wiring.h"

namespace xccl {

struct RunOptions {
  std::vector<int64_t> sizes_bytes = {64LL << 20};  // nccl-tests' sizes
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  int32_t iterations = 20;
  int32_t warmup = 5;
  bool processes = false;  // ranks are processes, else threads
  bool in_place = true;    // rows in place as well, where the program can
  std::chrono::nanoseconds time_limit = std::chrono::seconds(30);  // without progress on any rank
  WiringOptions wiring = {};
  int64_t memory_limit = 0;  // bytes of all buffers and slots; 0: nine tenths of what is free
  // What a simulation says for a size; absent where there is none.
  std::function<std::optional<int64_t>(int64_t size_bytes)> predicted_ps = {};
};

// Rows in order of size, out of place before in place; none in place for kinds or programs that have no such
// mode. Errors: kInvalidInput when memory does not suffice, with what is needed; what RunRanks and
// ExecuteRank say. Requires: the program verifies.
StatusOr<std::vector<RunRow>> RunProgram(const Program& program, const Collective& collective,
                                         const RunOptions& options);

}  // namespace xccl
