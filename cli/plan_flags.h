// The flags that bound and steer a search.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command_line.h"
#include "pipeline/pipeline.h"

namespace xccl {

struct PlanFlags {
  std::string engine = kDefaultEngine;
  std::string size = "64MiB";
  std::string model = "pipelined";
  std::optional<int32_t> chunks, steps, rounds;
  uint64_t seed = 0;
  std::string time_limit;
  bool allow_divergent = false;
};
// How the program of a plan is to run and to be made: --machine, --max-ctas and --verify-passes.
struct ExecutionFlags {
  std::string machine;
  std::optional<int32_t> max_ctas;
  bool verify_passes = false;
};
void AddExecutionFlags(Command& command, ExecutionFlags& flags);
Status SetExecution(const ExecutionFlags& flags, PlanOptions& options);

// Every flag except --engine and --size, which compare has in the plural.
void AddSearchFlags(Command& command, PlanFlags& flags);
StatusOr<PlanOptions> PlanOptionsOf(const PlanFlags& flags);

}  // namespace xccl
