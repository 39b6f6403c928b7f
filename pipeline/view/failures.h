// Shows a comparison of machines with failed cables as an HTML page and as an SVG picture.
#pragma once

#include <string>
#include <string_view>

#include "pipeline/compare_failures.h"
#include "pipeline/view/comparison.h"

namespace xccl {

// Returns `page` with the mark @XCCL_DATA@ replaced by the JSON that view/src/failures/data.ts describes.
// Requires that `page` has the mark once.
std::string FailuresPage(std::string_view page, const FailureComparison& comparison, const Topology& topology,
                         const Origin& origin);

// Returns an SVG for a paper, on white. It has a row for each of the worst failures, the worst first; a note
// counts the others. The bar of a row shows auto's time on the damaged machine ÷ the lower bound of that
// machine. If auto has no times, the bar is for the engine with the least mean time. Dots show this ratio for
// all other engines. A line is at 1, the bound. All times are those at the largest size. A failure that was
// drawn twice has one row.
std::string FailuresSvg(const FailureComparison& comparison, const Origin& origin);

}  // namespace xccl
