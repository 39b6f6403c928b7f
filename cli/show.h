// How results look: text for people on standard output, or --json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/row.h"
#include "pipeline/pipeline.h"

namespace xccl {

// One line of simulate and compare.
struct TimedPlan {
  std::string engine;   // as asked for
  std::string made_by;  // who made the plan: auto's winner
  int64_t size_bytes = 0;
  int64_t time_ps = 0;
  double algbw_bytes_per_s = 0;
  double busbw_bytes_per_s = 0;
  int64_t bound_ps = 0;
  double ratio = 0;
};
TimedPlan MakeTimedPlan(const std::string& engine, const std::string& made_by, const Collective& collective,
                        const Simulation& simulation, int64_t bound_ps);
Row ToRow(const TimedPlan& timed);
std::string ShownName(const TimedPlan& timed);  // "auto (ring)" where somebody else made the plan

Row PlanRow(const PipelineResult& result, const std::string& file);
std::string PlanText(const PipelineResult& result, const std::string& requested_engine,
                     const std::string& file);

// For people, four significant digits: "64MiB", "4.107GiB", "77B".
std::string FormatSizeShort(int64_t bytes);

// Columns as wide as their widest cell; cells starting with a digit or a minus sign are right-aligned.
std::string TableText(const std::vector<std::vector<std::string>>& rows);

}  // namespace xccl
