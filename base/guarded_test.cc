#include "base/guarded.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

StatusOr<int> Half(int number) {
  XCCL_CHECK(number % 2 == 0);
  return number / 2;
}

TEST(Guarded, AFailedCheckEndsTheWorkAlone) {
  EXPECT_EQ(*RunGuarded([] { return Half(4); }), 2);
  const StatusOr<int> odd = RunGuarded([] { return Half(3); });
  EXPECT_EQ(odd.status(), BugError("base/guarded_test.cc:9: check failed: number % 2 == 0"));
  // Guards within guards: the inner one ends first.
  EXPECT_EQ(*RunGuarded([]() -> StatusOr<int> {
    EXPECT_FALSE(RunGuarded([] { return Half(1); }).ok());
    return Half(RunGuarded([] { return Half(3); }).ok() ? 2 : 6);
  }),
            3);
}

TEST(GuardedDeathTest, OutsideACheckAborts) {
  EXPECT_FALSE(RunGuarded([] { return Half(1); }).ok());
  EXPECT_DEATH((void)Half(1), "check failed: number % 2 == 0");
}

}  // namespace
}  // namespace xccl
