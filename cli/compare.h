// Engines side by side on one topology and collective, over sizes.
#pragma once

#include <string>
#include <vector>

#include "cli/pipeline.h"
#include "cli/show.h"

namespace xccl {

struct Comparison {
  std::string title;
  std::vector<TimedPlan> times;       // by size, then by time
  std::vector<std::string> left_out;  // "ring: reason", engines that could not take part
};

// Empty: all but smt, which may search for long. Error: kUsage with "did you mean".
StatusOr<std::vector<std::string>> ComparedEngines(const std::vector<std::string>& wanted);

// Requires: engines that exist; empty: all but smt, which may search for long.
StatusOr<Comparison> Compare(const Topology& topology, const Collective& collective,
                             const std::vector<std::string>& engines, const std::vector<int64_t>& sizes,
                             const PipelineOptions& options);

std::string CompareText(const Comparison& comparison);
std::string CompareCsv(const Comparison& comparison);
// One self-contained page with a chart and the table.
std::string CompareHtml(const Comparison& comparison);

}  // namespace xccl
