// The options of a plan, as Python sets them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/plan_result.h"
#include "python/bindings/call.h"

namespace xccl::python {

// The options as Python passes them. OptionsOf parses the texts when a call begins.
struct Asked {
  std::string engine = kDefaultEngine;
  int64_t size_bytes = int64_t{64} << 20;
  std::string model = "pipelined";
  std::optional<int32_t> chunks, steps, rounds;
  uint64_t seed = 0;
  bool allow_divergent = false;
  std::optional<std::string> machine;  // absent: the machine of the topology's GPUs
  std::optional<int32_t> max_ctas;
  bool lower = true;
  bool verify_passes = false;
  bool relays = true;
  std::optional<double> time_limit_s;
};

// Throws if a text is wrong. The time limit runs from this call.
PlanOptions OptionsOf(const Asked& asked);
// Returns options that stop when the caller asks the call to stop, and that report progress to the caller.
PlanOptions Within(PlanOptions options, const Caller& caller);

// Throws if no model has this name.
TimeModel ModelOf(const std::string& name);
// Throws if no machine has this name, or the file that it names is wrong.
std::optional<MachineModel> MachineOf(const std::string& name);

}  // namespace xccl::python
