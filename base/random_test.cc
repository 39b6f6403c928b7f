#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace xccl {
namespace {

// Plans depend on these numbers: another generator would change every seeded result.
TEST(Random, IsTheSameEverywhere) {
  Random random(0);
  const uint64_t expected[] = {11091344671253066420u, 13793997310169335082u, 1900383378846508768u};
  for (uint64_t value : expected) EXPECT_EQ(random.Next(), value);
}

TEST(Mix, IsTheStepOfSplitMix64) {
  EXPECT_EQ(Mix(0), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(Mix(kGolden), 0x6e789e6aa1b965f4ULL);
}

TEST(Random, SeedsDiffer) { EXPECT_NE(Random(1).Next(), Random(2).Next()); }

TEST(Random, BelowCoversItsRangeEvenly) {
  Random random(7);
  std::vector<int> seen(10, 0);
  for (int i = 0; i < 10'000; ++i) ++seen[random.Below(10)];
  for (int count : seen) EXPECT_NEAR(count, 1000, 150);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.Below(1), 0u);
}

TEST(Random, UnitStaysBelowOne) {
  Random random(7);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = random.Unit();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(Random, ShuffleKeepsTheItems) {
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  std::vector<int> shuffled = items;
  Random random(3);
  random.Shuffle(std::span(shuffled));
  EXPECT_NE(shuffled, items);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, items);
}

}  // namespace
}  // namespace xccl
