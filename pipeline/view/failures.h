// The cost of failed cables, as a page and as a picture.
#pragma once

#include <string>
#include <string_view>

#include "pipeline/compare_failures.h"
#include "pipeline/view/comparison.h"

namespace xccl {

// The page: `page` with the JSON that view/src/failures/data.ts describes in place of its mark @XCCL_DATA@.
// Requires: the mark, once.
std::string FailuresPage(std::string_view page, const FailureComparison& comparison, const Topology& topology,
                         const Origin& origin);

// An SVG for a paper, on white: a row for each failure, the costliest first. Its bar is how many times as
// long as on the whole machine auto takes, or else the engine with the least mean time; dots are the other
// engines, and a line is the lower bound of the damaged machine; both are also ÷ the time on the whole
// machine. The times are those at the largest size. Failures drawn twice have one row.
std::string FailuresSvg(const FailureComparison& comparison, const Origin& origin);

}  // namespace xccl
