// How a comparison of engines looks: text, CSV, or a page with a chart.
#pragma once

#include <string>
#include <vector>

#include "cli/row.h"
#include "pipeline/compare.h"
#include "pipeline/compare_failures.h"

namespace xccl {

std::string CompareText(const Comparison& comparison);
std::string CompareCsv(const Comparison& comparison);
// One self-contained page with a chart and the table.
std::string CompareHtml(const Comparison& comparison);

std::string FailuresText(const FailureComparison& comparison);
std::string FailuresCsv(const FailureComparison& comparison);
std::vector<Row> FailureRows(const FailureComparison& comparison);

}  // namespace xccl
