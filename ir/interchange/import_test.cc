#include "ir/interchange/import.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

TEST(ImportTest, TextsThatNoReaderKnowsAreRefused) {
  EXPECT_EQ(ReadForeign(" \n", {.file = "a"}).status().message(),
            "a: empty; expected MSCCL XML or an MSCCL++ plan");
  EXPECT_EQ(ReadForeign("plan of mine, the first", {.file = "a"}).status().message(),
            "a: begins with 'plan of mine, the fi'; expected MSCCL XML or an MSCCL++ plan");
  EXPECT_EQ(ReadForeign("\n<algo/>", {.file = "a"}).status().message(),
            "a:2:1: ngpus=\"\"; expected 1..1024");
}

}  // namespace
}  // namespace xccl
