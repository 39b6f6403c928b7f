// How results look: text for people on standard output, or --json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/row.h"
#include "pipeline/pipeline.h"
#include "pipeline/predict.h"

namespace xccl {

Row ToRow(const TimedPlan& timed);
std::string ShownName(const TimedPlan& timed);  // "auto (ring)" where another engine made the plan

Row PlanRow(const PlanResult& result, const std::string& file);
std::string PlanText(const PlanResult& result, const std::string& requested_engine, const std::string& file);

// For people, four significant digits: "64MiB", "4.107GiB", "77B".
std::string FormatSizeShort(int64_t bytes);

// Columns are as wide as their widest cell; cells starting with a digit or a minus sign are right-aligned.
std::string TableText(const std::vector<std::vector<std::string>>& rows);

}  // namespace xccl
