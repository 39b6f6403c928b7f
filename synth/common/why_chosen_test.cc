#include "synth/common/why_chosen.h"

#include <gtest/gtest.h>

#include <vector>

namespace xccl {
namespace {

TEST(WhyChosen, SaysWhetherThePlanIsTheFastest) {
  const Contender tree{"tree", 1013, 28}, greedy{"greedy", 1000, 224}, ring{"ring", 2000, 56};
  const struct {
    Contender chosen;
    std::vector<Contender> others;
    size_t engines;
    std::string what, expected;
  } cases[] = {
      {greedy, {tree, ring}, 14, "", "fastest of 14 engines"},
      {greedy, {tree, ring}, 3, "program", "fastest program of 3 engines"},
      {tree, {greedy, ring}, 14, "", "within 2 %: tree, 28 messages; greedy 1.3 % faster with 224"},
      {tree, {greedy}, 2, "program", "within 2 %: tree, 28 messages; greedy's program 1.3 % faster with 224"},
      {ring, {greedy}, 2, "", "ring, 56 messages; greedy 100.0 % faster with 224"},
      {tree, {{"tree", 1000, 56}}, 1, "", "within 2 %: tree, 28 messages; another tree 1.3 % faster with 56"},
      {{"a", 1010, {}}, {{"b", 1000, {}}}, 2, "", "within 2 %: a; b 1.0 % faster"},
      {tree, {}, 1, "", ""},                                    // nothing to compare with
      {tree, {{"b", 1013, 1}}, 2, "", "fastest of 2 engines"},  // as fast
      {{"none", 0, 0}, {{"b", 0, 0}}, 2, "", "fastest of 2 engines"},
  };
  for (const auto& [chosen, others, engines, what, expected] : cases)
    EXPECT_EQ(WhyChosen(chosen, others, engines, what), expected);
  for (const auto& [chosen, others, engines, what, expected] : cases)
    EXPECT_EQ(IsWhyChosen(expected), !expected.empty()) << expected;
  EXPECT_FALSE(IsWhyChosen("fastest of 3 engines; the other ranks carry nothing"));
  EXPECT_FALSE(IsWhyChosen("as in a.json, which greedy did not make faster"));
}

}  // namespace
}  // namespace xccl
