#include "base/size_range.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

TEST(SizeText, UsesTheUnitThatTheSizeIsRoundIn) {
  EXPECT_EQ(SizeText(0), "0B");
  EXPECT_EQ(SizeText(64 << 20), "64MiB");
  EXPECT_EQ(SizeText(64'000'000), "64MB");
  EXPECT_EQ(SizeText(1000), "1KB");
  EXPECT_EQ(SizeText(1500), "1500B");
  EXPECT_EQ(SizeText(67'108'800), "67108800B");
  EXPECT_EQ(SizeText(65'536'000), "65536KB");  // shorter than 64000KiB
  EXPECT_EQ(SizeText(int64_t{1000} << 10), "1024KB");
  EXPECT_EQ(SizeText(1'500'000'000), "1500MB");
}

TEST(SizeRange, NamesRoundSizes) {
  EXPECT_EQ(SizeRangeText(0, 0), "all");
  EXPECT_EQ(SizeRangeText(0, 2 << 20), "0B to 2MiB");
  EXPECT_EQ(SizeRangeText(1 << 10, 64 << 10), "1KiB to 64KiB");
  EXPECT_EQ(SizeRangeText((512 << 10) + 1, 4 << 20), "over 512KiB to 4MiB");
  EXPECT_EQ(SizeRangeText(1 << 10, 0), "1KiB and more");
  EXPECT_EQ(SizeRangeText((4 << 20) + 1, 0), "over 4MiB");
  EXPECT_EQ(SizeRangeText(1, 1), "1B to 1B");
  EXPECT_EQ(SizeRangeText(67108800, 0), "67108800B and more");
}

}  // namespace
}  // namespace xccl
