// For normally distributed values the standard deviation is kDeviation × the median distance to the median,
// and the standard error of the median of n values is kErrorOfMedian × the standard deviation ÷ √n.
#include "base/spread.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace xccl {
namespace {

constexpr double kDeviation = 1.4826;
constexpr double kErrorOfMedian = 1.2533;  // √(π/2)

}  // namespace

double MedianOf(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double SpreadOf(std::span<const double> values) {
  const double median = MedianOf(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - median));
  const double distance = MedianOf(distances);
  if (distance == 0) return 0;
  return kErrorOfMedian * kDeviation * distance / std::sqrt(static_cast<double>(values.size())) / median;
}

}  // namespace xccl
