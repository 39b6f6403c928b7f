#include "base/yaml/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace xccl {
namespace {

// The tree in one line: maps in braces, lists in brackets, scalars in single quotes.
std::string Shown(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kScalar:
      return "'" + node.text + "'";
    case YamlNode::Kind::kList:
    case YamlNode::Kind::kMap: {
      const bool map = node.kind == YamlNode::Kind::kMap;
      std::string text(map ? "{" : "[");
      for (size_t i = 0; i < node.items.size(); ++i)
        text += (i == 0 ? "" : map && i % 2 == 1 ? ": " : ", ") + Shown(node.items[i]);
      return text + (map ? "}" : "]");
    }
  }
  return "";
}

TEST(YamlTest, ValuesAreRead) {
  const struct {
    std::string_view text, shown;
  } cases[] = {
      {"", "''"},
      {"# a comment\n", "''"},
      {"a", "'a'"},
      {"---\na: 1\n", "{'a': '1'}"},
      {"a: [1, 2.5]\nb:\n  - x\n  - {c: 'd e'}\n", "{'a': ['1', '2.5'], 'b': ['x', {'c': 'd e'}]}"},
      {"- a: \"x[1-2]\"  # comment\n  b: y[1-2]\n-\n", "[{'a': 'x[1-2]', 'b': 'y[1-2]'}, '']"},
      {"a: |\n  b\n  c\n", "{'a': 'b\nc\n'}"},
      {"{\"a\": [true, null]}", "{'a': ['true', 'null']}"},
      {"a: &x 1\n", "{'a': '1'}"},
  };
  for (const auto& c : cases) EXPECT_EQ(Shown(ParseYaml(c.text, "f").value()), c.shown) << c.text;
}

TEST(YamlTest, ValuesKnowTheirPlace) {
  const YamlNode root = ParseYaml("a: 1\nb:\n  - c: d\n", "f").value();
  const YamlNode* const b = root.Find("b");
  ASSERT_NE(b, nullptr);
  const YamlNode* const d = b->items[0].Find("c");
  ASSERT_NE(d, nullptr);
  EXPECT_EQ(d->line, 3);
  EXPECT_EQ(d->column, 8);
  EXPECT_EQ(root.Find("c"), nullptr);
  EXPECT_EQ(b->Find("c"), nullptr);
}

TEST(YamlTest, OtherTextsAreRefused) {
  const struct {
    std::string text;
    std::string_view message;
  } cases[] = {
      {"a: [1\n",
       "f:2:1: not YAML: did not find expected ',' or ']' while parsing a flow sequence; expected YAML"},
      {"a: 1\n b: 2\n", "f:2:3: not YAML: mapping values are not allowed in this context; expected YAML"},
      {"a: \"\\xff",
       "f:1:9: not YAML: found unexpected end of stream while scanning a quoted scalar; "
       "expected YAML"},
      {"a: \xff\n", "f:1:4: not YAML: invalid leading UTF-8 octet; expected YAML"},
      {"a: 1\n---\nb: 2\n", "f:2:1: a second document; expected one in the file"},
      {"a: &x 1\nb: *x\n", "f:2:4: an alias; expected the value itself"},
      {"a: 1\nb: 2\na: 3\n", "f:3:1: the key 'a' a second time; expected it once"},
      {"[1, 2]: 3\n", "f:1:6: a key that is no text; expected a text"},
      {std::string(100'000, '['), "f:1:65: nested deeper than 64; expected fewer levels"},
      {std::string((16 << 20) + 1, 'a'), "f: 16777217 bytes; expected at most 16 MiB of YAML"},
  };
  for (const auto& c : cases) {
    const StatusOr<YamlNode> node = ParseYaml(c.text, "f");
    ASSERT_FALSE(node.ok()) << c.message;
    EXPECT_EQ(node.status().message(), c.message);
  }
}

TEST(YamlTest, RandomTextsAreReadOrRefused) {
  Random random(1);
  constexpr std::string_view kCharacters = "ab1 \n:-[]{},'\"&*!|>%@?#\t\\.";
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    for (uint64_t n = random.Below(24); n > 0; --n) text += kCharacters[random.Below(kCharacters.size())];
    const StatusOr<YamlNode> node = ParseYaml(text, "f");
    EXPECT_TRUE(node.ok() || node.status().code() == StatusCode::kInvalidInput);
  }
}

}  // namespace
}  // namespace xccl
