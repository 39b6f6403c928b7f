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

TEST(Strings, WordsAndLists) {
  EXPECT_EQ(WordsOf("  a\tbc \r\n d"), (std::vector<std::string_view>{"a", "bc", "d"}));
  EXPECT_TRUE(WordsOf(" \n").empty());
  EXPECT_EQ(Counted(1, "row") + ", " + Counted(2, "row") + ", " + Counted(0, "switch"),
            "1 row, 2 rows, 0 switches");
  const std::vector<std::string> items = {"a", "b", "c"};
  EXPECT_EQ(Either(items), "a, b or c");
  EXPECT_EQ(Either(std::span(items).first(2)), "a or b");
  EXPECT_EQ(Either(std::span(items).first(1)), "a");
  EXPECT_EQ(Either({}), "");
  const std::vector<std::string> many = {"a", "b", "c", "d", "e", "f", "g"};
  EXPECT_EQ(SomeOf(many), "a, b, c, d, e and 2 more");
  EXPECT_EQ(SomeOf(std::span(many).first(6)), "a, b, c, d, e, f");
  EXPECT_EQ(SomeOf({}), "");
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
  // The beginning of a name.
  const std::vector<std::string_view> formats = {"cuda", "mscclpp-json", "msccl-xml"};
  EXPECT_EQ(DidYouMean("msccl-", formats), "; did you mean 'msccl-xml'?");
  EXPECT_EQ(DidYouMean("mscclp", formats), "; did you mean 'mscclpp-json'?");
  EXPECT_EQ(DidYouMean("msccl", formats), "; did you mean 'msccl-xml'?");
  const std::vector<std::string_view> types = {"float", "bfloat16"};
  EXPECT_EQ(DidYouMean("bfloat", types), "; did you mean 'bfloat16'?");
}

// Neither a name of 60,000 letters nor a million known names may cost more than a moment.
TEST(Strings, SuggestionsAreCheap) {
  const std::string longest(60'000, 'a'), sixty(60, 'a'), other(64, 'b');
  EXPECT_EQ(DidYouMean(longest, std::vector<std::string_view>(1'000'000, longest)), "");
  EXPECT_EQ(DidYouMean(sixty, std::vector<std::string_view>(1'000'000, longest)), "");
  std::vector<std::string_view> known(1'000'000, other);
  known.back() = sixty;
  EXPECT_EQ(DidYouMean(sixty, known), "");
  known.front() = sixty;
  EXPECT_EQ(DidYouMean(sixty, known), "; did you mean '" + sixty + "'?");
}

TEST(Strings, Utf8) {
  EXPECT_EQ(ValidUtf8Length("a\xC3\xA9\xFF"), 3u);
  EXPECT_EQ(ValidUtf8Length(""), 0u);
  EXPECT_EQ(ReplaceBadUtf8("n\xE9.\xFF\xC3\xA9"), "n\xEF\xBF\xBD.\xEF\xBF\xBD\xC3\xA9");
  EXPECT_EQ(ReplaceBadUtf8("plain"), "plain");
}

TEST(Strings, Shortened) {
  EXPECT_EQ(Shortened(std::string(80, 'a')), std::string(80, 'a'));
  EXPECT_EQ(Shortened(std::string(81, 'a')), std::string(80, 'a') + "...");
  EXPECT_EQ(Shortened(std::string(79, 'a') + "\xC3\xA9"), std::string(79, 'a') + "...");
}

TEST(Cleaned, HasNoControlsAndAnEnd) {
  EXPECT_EQ(Cleaned("host \xc3\xa9"), "host \xc3\xa9");
  EXPECT_EQ(Cleaned(std::string_view("a\0b\n\x1b[31m\x7f\xff\xc2\x9b", 13)), "a?b??[31m???");
  EXPECT_EQ(Cleaned("a\u202eb\u200fc\ufeff\u2028\u2066\u2013"), "a?b?c???\u2013");
  EXPECT_EQ(Cleaned("abcdef", 4), "abcd...");
  EXPECT_EQ(Cleaned("abc\xc3\xa9", 4), "abc...");
}

}  // namespace
}  // namespace xccl
