// The flags that bound and steer a search.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/pipeline.h"

namespace CLI {
class App;
}

namespace xccl {

struct PlanFlags {
  std::string engine = "auto";
  std::string size = "64MiB";
  std::string model = "pipelined";
  std::optional<int32_t> chunks, steps, rounds;
  uint64_t seed = 0;
  std::string time_limit;
  bool allow_divergent = false;
};
// Everything but --engine and --size, which compare has in the plural.
void AddSearchFlags(CLI::App& command, PlanFlags& flags);
StatusOr<PipelineOptions> MakePipelineOptions(const PlanFlags& flags);

}  // namespace xccl
