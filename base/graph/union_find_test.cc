#include "base/graph/union_find.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

TEST(UnionFind, SecondOnesRepresentativeStands) {
  UnionFind sets(5);
  EXPECT_TRUE(sets.Join(0, 1));
  EXPECT_TRUE(sets.Join(2, 3));
  EXPECT_TRUE(sets.Join(3, 0));
  EXPECT_FALSE(sets.Join(2, 1));
  for (int32_t i : {0, 1, 2, 3}) EXPECT_EQ(sets.Find(i), 1);
  EXPECT_EQ(sets.Find(4), 4);
}

TEST(UnionFind, LongChains) {
  constexpr int32_t kMany = 1 << 20;
  UnionFind sets(kMany);
  for (int32_t i = 0; i + 1 < kMany; ++i) sets.Join(i, i + 1);
  EXPECT_EQ(sets.Find(0), kMany - 1);
}

}  // namespace
}  // namespace xccl
