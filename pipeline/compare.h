// Engines side by side on one topology and collective, over sizes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/pipeline.h"
#include "pipeline/predict.h"

namespace xccl {

struct Comparison {
  std::string title;
  std::vector<TimedPlan> times;       // by size, then by time
  std::vector<std::string> left_out;  // "ring: reason", engines that could not take part
};

// The engines to compare, and lines about the others.
struct ComparedEngines {
  std::vector<std::string> names;
  std::vector<std::string> left_out;  // "ring, tree: not for alltoall"
};

// Empty: the engines for this collective without smt, which may search for long; "all": with smt. Error:
// kUsage with "did you mean".
StatusOr<ComparedEngines> EnginesToCompare(const std::vector<std::string>& wanted,
                                           const Collective& collective);

// Adds "NAME: why", once.
void LeaveOut(std::string_view name, const Status& why, std::vector<std::string>& left_out);

// Chooses engines as EnginesToCompare does.
StatusOr<Comparison> Compare(const Topology& topology, const Collective& collective,
                             const std::vector<std::string>& engines, const std::vector<int64_t>& sizes,
                             const PlanOptions& options);

}  // namespace xccl
