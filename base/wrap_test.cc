#include "base/wrap.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

using Lines = std::vector<std::string>;

TEST(WrapWords, FillsLines) {
  EXPECT_EQ(WrapWords("aa bb cc", 5), (Lines{"aa bb", "cc"}));
  EXPECT_EQ(WrapWords("aa bb cc", 4), (Lines{"aa", "bb", "cc"}));
  EXPECT_EQ(WrapWords(" aa\n  bb ", 80), (Lines{"aa bb"}));
  EXPECT_EQ(WrapWords("a longword b", 4), (Lines{"a", "longword", "b"}));
  EXPECT_EQ(WrapWords(" ", 4), Lines());
}

}  // namespace
}  // namespace xccl
