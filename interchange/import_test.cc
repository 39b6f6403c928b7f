#include "interchange/import.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

TEST(ImportTest, TextsThatNoReaderKnowsAreRefused) {
  EXPECT_EQ(ReadForeign(" \n", {.file = "a"}).status().message(),
            "a: empty; expected MSCCL XML, an MSCCL++ plan, ForestColl's trees or TACOS' lists");
  EXPECT_EQ(
      ReadForeign("plan of mine, the first", {.file = "a"}).status().message(),
      "a: begins with 'plan of mine, the fi'; expected MSCCL XML, an MSCCL++ plan, ForestColl's trees or "
      "TACOS' lists");
  EXPECT_EQ(
      ReadForeign("x\ny", {.file = "a", .beside = "a table"}).status().message(),
      "a: begins with 'x'; expected MSCCL XML, an MSCCL++ plan, ForestColl's trees, TACOS' lists or a table");
  EXPECT_EQ(ReadForeign("\n<algo/>", {.file = "a"}).status().message(),
            "a:2:1: ngpus=\"\"; expected 1..1024");
}

}  // namespace
}  // namespace xccl
