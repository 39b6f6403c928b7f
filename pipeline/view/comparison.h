// A comparison of engines as a page and as a picture.
#pragma once

#include <string>
#include <string_view>

#include "pipeline/compare.h"

namespace xccl {

// The page: `page` with the JSON that view/src/compare/data.ts describes in place of its mark @XCCL_DATA@:
// the times, the machine drawn, and the command line that made them. Requires: the mark, once.
std::string ComparisonPage(std::string_view page, const Comparison& comparison, const Topology& topology,
                           const Collective& collective, const std::string& command);

// An SVG for a paper, on white: time, bus bandwidth and time over bound, by size; where there is one size
// alone, by engine. auto and the engines that are the fastest at some size have colours and labels,
// the others are grey; where there are few engines all have colours.
std::string ComparisonSvg(const Comparison& comparison, const std::string& command);

}  // namespace xccl
