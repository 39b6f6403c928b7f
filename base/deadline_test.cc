#include "base/deadline.h"

#include <gtest/gtest.h>

#include <cmath>

namespace xccl {
namespace {

TEST(Deadline, PassesAtItsLimitOrNever) {
  EXPECT_FALSE(Deadline()());
  EXPECT_FALSE(Deadline().has_limit());
  EXPECT_TRUE(std::isinf(Deadline().SecondsLeft()));
  EXPECT_TRUE(Deadline(0.0)());
  EXPECT_FALSE(Deadline(1000.0)());
  EXPECT_NEAR(Deadline(1000.0).SecondsLeft(), 1000, 10);
  EXPECT_FALSE(Deadline(1e300)()) << "a limit beyond the clock is no limit that has passed";
  EXPECT_EQ(Deadline(2.5).ToString(), "--time-limit=2.5s");
}

TEST(Deadline, LeavesTimeForWhatFollows) {
  EXPECT_NEAR(Deadline(100.0).Leaving(0.25, 60).SecondsLeft(), 75, 5);
  EXPECT_NEAR(Deadline(1000.0).Leaving(0.25, 60).SecondsLeft(), 940, 10);
  EXPECT_EQ(Deadline(100.0).Leaving(0.25, 60).ToString(), "--time-limit=100s");
  EXPECT_TRUE(Deadline(0.0).Leaving(0.25, 60)());
  EXPECT_FALSE(Deadline().Leaving(0.25, 60).has_limit());
}

}  // namespace
}  // namespace xccl
