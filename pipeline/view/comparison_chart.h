// One chart of a comparison as a figure for a paper.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "draw/figure.h"
#include "pipeline/compare.h"
#include "pipeline/view/comparison.h"

namespace xccl {

// The charts' names: "time", "busbw", "ratio", "messages".
const std::vector<std::string_view>& ChartNames();

// Reads a width such as "3.4in", "86mm", "8.6cm" or "245pt", and the size of the font in one of these units.
// Errors: kUsage with the flag's name, also if the texts would leave no room for the chart.
StatusOr<FigureSize> ParseFigureSize(std::string_view width, std::string_view font);

// Returns an SVG of the chart in that size. Errors: kInvalidInput if no row has a value for it.
// Requires: one of ChartNames.
StatusOr<std::string> ComparisonChart(const Comparison& comparison, std::string_view chart,
                                      const FigureSize& size, const Origin& origin);

}  // namespace xccl
