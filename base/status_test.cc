// StatusOr without a value, and ids that do not fit.
#include "base/status.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/ids.h"

namespace xccl {
namespace {

TEST(StatusOrDeathTest, ReadingAValueThatIsNotThereAbortsWithTheReason) {
  const std::string aborts = "check failed: a StatusOr was read that has no value: x.xml: no such file\n";
  StatusOr<std::string> none = InvalidInput("x.xml: no such file");
  const StatusOr<std::string> constant = none;
  EXPECT_DEATH((void)none.value(), aborts);
  EXPECT_DEATH((void)*none, aborts);
  EXPECT_DEATH((void)none->size(), aborts);
  EXPECT_DEATH((void)constant.value(), aborts);
  EXPECT_DEATH((void)*constant, aborts);
  EXPECT_DEATH((void)constant->size(), aborts);
  EXPECT_DEATH((void)std::move(none).value(), aborts);
  EXPECT_DEATH((void)*std::move(none), aborts);
}

TEST(StatusOr, GivesItsValue) {
  StatusOr<std::string> some = std::string("text");
  EXPECT_EQ(some.value(), "text");
  EXPECT_EQ(*some, "text");
  EXPECT_EQ(some->size(), 4u);
  EXPECT_EQ(*std::move(some), "text");
}

TEST(TypedIdDeathTest, ANumberOfMoreThan32BitsIsNotCutOff) {
  EXPECT_EQ(Rank(INT32_MAX).value, INT32_MAX);
  EXPECT_EQ(Rank(INT32_MIN).value, INT32_MIN);
  int64_t large = int64_t{1} << 32;
  EXPECT_DEATH((void)Rank(large), "base/ids.h:[0-9]+: check failed: value == v");
}

}  // namespace
}  // namespace xccl
