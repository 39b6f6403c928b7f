// The options of a plan, as Python sets them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/plan_result.h"
#include "python/bindings/call.h"

namespace xccl::python {

// Texts are parsed where a call begins.
struct Asked {
  std::string engine = kDefaultEngine;
  int64_t size_bytes = int64_t{64} << 20;
  std::string model = "pipelined";
  std::optional<int32_t> chunks, steps, rounds;
  uint64_t seed = 0;
  bool allow_divergent = false;
  std::optional<std::string> machine;  // absent: that of the topology's GPUs
  std::optional<int32_t> max_ctas;
  bool lower = true;
  bool verify_passes = false;
  bool relays = true;
  std::optional<double> time_limit_s;
};

// Throws where a text is wrong. The time of its deadline begins here.
PlanOptions OptionsOf(const Asked& asked);
// The options within a call: they hear when it is to stop, and say what happens.
PlanOptions Within(PlanOptions options, const Caller& caller);

// Throws where there is no such model.
TimeModel ModelOf(const std::string& name);
// Throws where there is no such machine, or its file is wrong.
std::optional<MachineModel> MachineOf(const std::string& name);

}  // namespace xccl::python
