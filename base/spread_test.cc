#include "base/spread.h"

#include <gtest/gtest.h>

#include <vector>

namespace xccl {
namespace {

TEST(Spread, IsTheErrorOfTheMedian) {
  const struct {
    const char* name;
    std::vector<double> values;
    double median, spread;
  } cases[] = {
      {"all equal", {7, 7, 7, 7, 7}, 7, 0},
      {"an outlier does not count", {7, 7, 700, 7, 7}, 7, 0},
      {"an even number of values", {1, 4, 2, 3}, 2.5, 1.2533 * 1.4826 * 1 / 2 / 2.5},
      {"a tenth either way", {100, 90, 110, 90, 110}, 100, 1.2533 * 1.4826 * 10 / 2.2360679775 / 100},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_DOUBLE_EQ(MedianOf(c.values), c.median);
    EXPECT_NEAR(SpreadOf(c.values), c.spread, 1e-9);
  }
}

}  // namespace
}  // namespace xccl
