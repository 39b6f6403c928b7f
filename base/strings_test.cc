#include "base/strings.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

TEST(Strings, SplitKeepsEmptyFields) {
  EXPECT_EQ(Split("a,b", ','), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(Split(",a,,", ','), (std::vector<std::string>{"", "a", "", ""}));
  EXPECT_EQ(Split("", ','), (std::vector<std::string>{""}));
}

TEST(Strings, Trim) {
  EXPECT_EQ(Trim(" \ta b\r\n"), "a b");
  EXPECT_EQ(Trim(" \n"), "");
  EXPECT_EQ(Trim(""), "");
}

TEST(Strings, Join) {
  EXPECT_EQ(Join(std::vector<std::string>{"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(Join({}, ","), "");
}

TEST(Strings, DidYouMean) {
  const std::vector<std::string_view> known = {"torus", "ring", "full-mesh", "mesh"};
  const struct {
    std::string name, expected;
  } cases[] = {
      {"tours", "; did you mean 'torus'?"},
      {"rin", "; did you mean 'ring'?"},
      {"fullmesh", "; did you mean 'full-mesh'?"},
      {"mesj", "; did you mean 'mesh'?"},
      {"dragonfly", ""},
      {"", ""},
  };
  for (const auto& c : cases) EXPECT_EQ(DidYouMean(c.name, known), c.expected) << c.name;
  EXPECT_EQ(NearestName("x", {}), "");
}

}  // namespace
}  // namespace xccl
