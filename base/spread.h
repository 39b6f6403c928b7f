// The median of measured times, and how far it can be trusted.
#pragma once

#include <span>

namespace xccl {

// Returns the median: the middle value, or the mean of the two middle values. Requires: not empty.
double MedianOf(std::span<const double> values);

// Returns the spread of positive values: the standard error of their median as a share of the median. It is
// estimated from the median distance to the median, so that single outliers do not count. Returns 0 where all
// values are equal. Requires: at least two values.
double SpreadOf(std::span<const double> values);

}  // namespace xccl
