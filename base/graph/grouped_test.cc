#include "base/graph/grouped.h"

#include <gtest/gtest.h>

#include <string>

namespace xccl {
namespace {

TEST(Grouped, KeepsOrderAndEmptyGroups) {
  const std::vector<std::pair<int32_t, std::string>> items = {
      {2, "a"}, {0, "b"}, {2, "c"}, {4, "d"}, {0, "e"}};
  const auto grouped = GroupItems<std::string, int64_t>(6, [&](auto add) {
    for (const auto& [group, item] : items) add(group, item);
  });
  ASSERT_EQ(grouped.size(), 6u);
  std::string all;
  for (size_t g = 0; g < grouped.size(); ++g) {
    for (const std::string& item : grouped[g]) all += item;
    all += '|';
  }
  EXPECT_EQ(all, "be||ac||d||");
}

TEST(Grouped, Empty) {
  EXPECT_EQ(Grouped<int32_t>{}.size(), 0u);
  EXPECT_EQ(GroupItems<int32_t>(0, [](auto) {}).size(), 0u);
}

}  // namespace
}  // namespace xccl
