#include "ir/tolerance.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

struct Case {
  int64_t time_ps, other_ps;
  bool is_within, is_faster;
};

constexpr Case kCases[] = {
    {97, 100, true, true},     // saves more than 2 %
    {98, 100, true, false},    // saves 2 % and no more
    {102, 100, true, false},   // loses 2 % and no more
    {103, 100, false, false},  // loses more
    {0, 0, true, false},
    // Times of days.
    {102'000'000'000'000'000, 100'000'000'000'000'000, true, false},
    {102'000'000'000'000'100, 100'000'000'000'000'000, false, false},
};

TEST(Tolerance, IsTwoPercentEitherWay) {
  for (const Case& c : kCases) {
    EXPECT_EQ(IsWithinTolerance(c.time_ps, c.other_ps), c.is_within) << c.time_ps;
    EXPECT_EQ(IsFaster(c.time_ps, c.other_ps), c.is_faster) << c.time_ps;
  }
  EXPECT_TRUE(IsWithin(125, 1.25, 100));
  EXPECT_FALSE(IsWithin(126, 1.25, 100));
}

}  // namespace
}  // namespace xccl
