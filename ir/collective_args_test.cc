#include "ir/collective_args.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

std::string Shown(const StatusOr<std::vector<Rank>>& ranks) {
  if (!ranks.ok()) return ranks.status().message();
  std::string text;
  for (Rank r : *ranks) text += std::to_string(r.value) + " ";
  return text;
}

std::string Shown(const StatusOr<std::vector<std::pair<Rank, Rank>>>& pairs) {
  if (!pairs.ok()) return pairs.status().message();
  std::string text;
  for (const auto& [from, to] : *pairs)
    text += std::to_string(from.value) + ">" + std::to_string(to.value) + " ";
  return text;
}

std::string Shown(const StatusOr<std::vector<int64_t>>& counts) {
  if (!counts.ok()) return counts.status().message();
  std::string text;
  for (int64_t count : *counts) text += std::to_string(count) + " ";
  return text;
}

TEST(CollectiveArgs, RankLists) {
  const struct {
    std::string text, expected;
  } cases[] = {
      {"0,2,4-7", "0 2 4 5 6 7 "},
      {"7,0", "7 0 "},
      {" 1 , 3-3", "1 3 "},
      {"", "'': ''; expected a rank"},
      {"1,,2", "'1,,2': ''; expected a rank"},
      {"-1", "'-1': '-1'; expected a rank"},
      {"1-2-3", "'1-2-3': '2-3'; expected a rank"},
      {"x", "'x': 'x'; expected a rank"},
      {"0x1", "'0x1': '0x1'; expected a rank"},
      {"99999999999999999999", "'99999999999999999999': '99999999999999999999'; expected a rank"},
      {"8", "'8': rank 8; ranks are 0..7"},
      {"4-2", "'4-2': 4-2 runs backwards; expected 2-4"},
      {"1-3,2", "'1-3,2': rank 2 is given twice; expected each rank once"},
  };
  for (const auto& c : cases) EXPECT_EQ(Shown(ParseRankList(c.text, 8)), c.expected) << c.text;
  EXPECT_EQ(ParseRankList("x", 8).status().code(), StatusCode::kUsage);
}

TEST(CollectiveArgs, Pairs) {
  const struct {
    std::string text, expected;
  } cases[] = {
      {"0>1,2>3", "0>1 2>3 "},
      {"0>0", "0>0 "},
      {"0-1", "'0-1': '0-1'; expected a pair such as 0>1"},
      {"0>1>2", "'0>1>2': '0>1>2'; expected a pair such as 0>1"},
      {"0>", "'0>': ''; expected a rank"},
      {"0>9", "'0>9': rank 9; ranks are 0..3"},
      {"0>1,0>1", "'0>1,0>1': pair 0>1 is given twice; expected each pair once"},
  };
  for (const auto& c : cases) EXPECT_EQ(Shown(ParsePairs(c.text, 4)), c.expected) << c.text;
}

TEST(CollectiveArgs, Counts) {
  constexpr CollectiveKind kMatrix = CollectiveKind::kAlltoallv, kList = CollectiveKind::kAllgatherv;
  const struct {
    CollectiveKind kind;
    std::string text, expected;
  } cases[] = {
      {kMatrix, "# two ranks\n1, 2\n\n3,4\n", "1 2 3 4 "},
      {kMatrix, "1,2\r\n3,4", "1 2 3 4 "},
      {kMatrix, "1,2\n", "c.csv: 1 rows; expected 2, one per source"},
      {kMatrix, "1,2,3\n4,5\n", "c.csv:1:1: 3 counts; expected 2, one per destination"},
      {kMatrix, "1,2\n3,x\n", "c.csv:2:3: 'x'; expected a whole number of zero or more"},
      {kMatrix, "1,2\n3,\n", "c.csv:2:3: ''; expected a whole number of zero or more"},
      {kList, "5,0\n", "5 0 "},
      {kList, "5\n0\n", "5 0 "},
      {kList, "5,-1\n", "c.csv:1:3: '-1'; expected a whole number of zero or more"},
      {kList, "5,1.5\n", "c.csv:1:3: '1.5'; expected a whole number of zero or more"},
      {kList, "", "c.csv: 0 counts; expected 2, one per rank"},
  };
  for (const auto& c : cases) EXPECT_EQ(Shown(ParseCounts(c.text, "c.csv", c.kind, 2)), c.expected) << c.text;
  EXPECT_EQ(Shown(ReadCountsFile("no/such.csv", kList, 2)),
            "no/such.csv: cannot read: No such file or directory");
}

}  // namespace
}  // namespace xccl
