#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "base/json/json_value.h"
#include "base/json/json_writer.h"

namespace xccl {
namespace {

std::string Written(const std::function<void(JsonWriter&)>& write) {
  std::ostringstream out;
  JsonWriter writer(out);
  write(writer);
  writer.Finish();
  return out.str();
}

TEST(JsonWriter, Layouts) {
  const auto write = [](JsonWriter& w) {
    w.BeginObject(JsonWriter::Layout::kLines);
    w.Key("format");
    w.Integer(1);
    w.Key("list");
    w.Integers(std::vector<int>{1, -2, 3}, [](int i) { return 10 * i; });
    w.Key("nothing");
    w.BeginArray(JsonWriter::Layout::kLines);
    w.EndArray();
    w.Key("inner");
    w.BeginArray(JsonWriter::Layout::kLines);
    w.BeginObject();
    w.Key("a");
    w.Bool(true);
    w.Key("b");
    w.Null();
    w.EndObject();
    w.Number(0.1);
    w.Unsigned(UINT64_MAX);
    w.EndArray();
    w.EndObject();
  };
  EXPECT_EQ(Written(write),
            "{\n \"format\":1,\n \"list\":[10,-20,30],\n \"nothing\":[],\n \"inner\":[\n  "
            "{\"a\":true,\"b\":null},\n"
            "  0.1,\n  18446744073709551615\n ]\n}\n");
}

TEST(JsonWriter, Strings) {
  const struct {
    std::string name, value, expected;
  } cases[] = {
      {"plain", "abc", "\"abc\"\n"},
      {"quotes", "a\"b\\c", "\"a\\\"b\\\\c\"\n"},
      {"control characters", std::string("\n\t\0", 3), "\"\\n\\u0009\\u0000\"\n"},
      {"UTF-8 goes through", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
       "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"\n"},
      {"a lone byte", "\xff", "\"\\u00ff\"\n"},
      {"an overlong sequence", "\xc0\x80", "\"\\u00c0\\u0080\"\n"},
      {"a surrogate", "\xed\xa0\x80", "\"\\u00ed\\u00a0\\u0080\"\n"},
      {"cut short", "\xe2\x82", "\"\\u00e2\\u0082\"\n"},
  };
  for (const auto& c : cases)
    EXPECT_EQ(Written([&](JsonWriter& w) { w.String(c.value); }), c.expected) << c.name;
}

TEST(JsonDocument, Columns) {
  const JsonDocument document =
      JsonDocument::Parse(R"({"i": [1, -2, 3], "m": [1, [2, 3], [], 4], "n": [], "x": [[1, 2], [3]],)"
                          R"( "mixed": [1, [2], "s"]})",
                          "f.json")
          .value();
  const JsonValue root = document.root();
  const std::span<const int64_t> i = root.Get("i").value().Integers(-5, 5).value();
  EXPECT_EQ(std::vector<int64_t>(i.begin(), i.end()), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(root.Get("n").value().Integers(0, 0).value().size(), 0u);
  EXPECT_EQ(root.Get("n").value().Lists(0, 0).value().size(), 0);
  EXPECT_EQ(root.Get("n").value().Items().value().size(), 0u);

  const auto show = [](const IntegerLists& lists) {
    std::string text;
    for (int64_t e = 0; e < lists.size(); ++e) {
      text += lists.IsBare(e) ? "b" : "l";
      for (int64_t item : lists[e]) text += std::to_string(item);
    }
    return text;
  };
  EXPECT_EQ(show(root.Get("i").value().Lists(-5, 5).value()), "b1b-2b3");
  EXPECT_EQ(show(root.Get("m").value().Lists(0, 5).value()), "b1l23lb4");
  EXPECT_EQ(show(root.Get("x").value().Lists(0, 5).value()), "l12l3");

  const std::vector<JsonValue> mixed = root.Get("mixed").value().Items().value();
  ASSERT_EQ(mixed.size(), 3u);
  EXPECT_EQ(mixed[0].Integer(0, 9).value(), 1);
  EXPECT_EQ(mixed[1].Integers(0, 9).value()[0], 2);
  EXPECT_EQ(mixed[2].String().value(), "s");
}

TEST(JsonDocument, Scalars) {
  const JsonDocument document =
      JsonDocument::Parse(R"({"t": true, "u": 18446744073709551615, "d": 0.5, "z": null, "e": "\u00e9"})",
                          "f")
          .value();
  const JsonValue root = document.root();
  EXPECT_TRUE(root.Get("t").value().Bool().value());
  EXPECT_EQ(root.Get("u").value().Unsigned().value(), UINT64_MAX);
  EXPECT_EQ(root.Get("d").value().Number().value(), 0.5);
  EXPECT_TRUE(root.Get("z").value().IsNull());
  EXPECT_EQ(root.Get("e").value().String().value(), "\xc3\xa9");
  EXPECT_FALSE(root.Find("q").value().has_value());
}

TEST(JsonDocument, SyntaxErrors) {
  const struct {
    std::string name, text, expected;
  } cases[] = {
      {"empty", "", "f.json:1:1: truncated: the text ends inside its value; expected the rest"},
      {"cut in an array", "{\n\"a\": [1, 2",
       "f.json:2:11: truncated: the text ends inside its value; expected the rest"},
      {"cut in a string", "{\"abc",
       "f.json:1:6: truncated: the text ends inside its value; expected the rest"},
      {"cut in an object", "{\"a\": 1,",
       "f.json:1:9: truncated: the text ends inside its value; expected the rest"},
      {"a zero byte, which nlohmann takes for the end", std::string("[1,\0 2]", 7),
       "f.json:1:4: not JSON: unexpected byte 0x00"},
      {"a zero byte behind the value", std::string("{}\n\0{}", 6),
       "f.json:2:1: not JSON: unexpected byte 0x00"},
      {"a byte-order mark", "\xef\xbb\xbf{}", "f.json:1:1: begins with a byte-order mark; expected JSON"},
      {"UTF-16", std::string("\xff\xfe{\0}\0", 6),
       "f.json:1:1: begins with a mark of UTF-16; expected JSON in UTF-8"},
      {"UTF-16 of the other order", std::string("\xfe\xff\0{\0}", 6),
       "f.json:1:1: begins with a mark of UTF-16; expected JSON in UTF-8"},
      {"a number too large", "{\"a\":\n [1, -1e999]}",
       "f.json:2:6: -1e999 is too large; expected a number below 1.8e308"},
      {"XML", "<topology/>", "f.json:1:1: not JSON: unexpected '<'"},
      {"wrong bracket", "{\"a\":\n [1}", "f.json:2:4: not JSON: unexpected '}'"},
      {"text after the value", "{} x", "f.json:1:4: not JSON: unexpected 'x'"},
      {"bad UTF-8", "\"\xff\"", "f.json:1:2: not JSON: unexpected byte 0xff"},
      {"a key twice", "{\"a\":1,\"a\":2}", "f.json: key 'a' is given twice; expected each key once"},
      {"deep", std::string(101, '['), "f.json: nested deeper than 100"},
  };
  for (const auto& c : cases) {
    const StatusOr<JsonDocument> document = JsonDocument::Parse(c.text, "f.json");
    ASSERT_FALSE(document.ok()) << c.name;
    EXPECT_EQ(document.status().message(), c.expected) << c.name;
  }
}

TEST(JsonValue, ErrorsNameTheirPlace) {
  const JsonDocument document =
      JsonDocument::Parse(R"({"a": {"b": [{"c": [1, 99]}, {"c": [[1], [2, 77]]}], "s": "x"}, "f": 1.5,)"
                          R"( "big": 9223372036854775808, "bigs": [1, 9223372036854775808]})",
                          "f.json")
          .value();
  const JsonValue root = document.root();
  const JsonValue a = root.Get("a").value();
  const std::vector<JsonValue> b = a.Get("b").value().Items().value();
  const struct {
    Status status;
    std::string expected;
  } cases[] = {
      {b[0].Get("c").value().Integers(0, 9).status(), "f.json: a.b[0].c: entry 1 is 99; expected 0..9"},
      {b[1].Get("c").value().Lists(0, 9).status(), "f.json: a.b[1].c: entry 1 has 77; expected 0..9"},
      {b[1].Get("c").value().Integers(0, 9).status(),
       "f.json: a.b[1].c: entry 0 is a list; expected an array of whole numbers that fit 64 bits"},
      {b[0].Get("d").status(), "f.json: a.b[0]: no key 'd'; expected one"},
      {a.Get("s").value().Integer(0, 1).status(), "f.json: a.s: a string; expected a whole number"},
      {a.Get("s").value().Items().status(), "f.json: a.s: a string; expected an array of other values"},
      {a.String().status(), "f.json: a: an object; expected a string"},
      {root.Get("f").value().Integer(0, 1).status(), "f.json: f: 1.5; expected a whole number"},
      {root.Get("big").value().Integer(0, 7).status(), "f.json: big: 9223372036854775808; expected 0..7"},
      {root.Get("bigs").value().Integers(0, 7).status(),
       "f.json: bigs: an array; expected an array of whole numbers that fit 64 bits"},
      {root.Get("f").value().Get("x").status(), "f.json: f: a number; expected an object"},
      {root.Error("all wrong"), "f.json: all wrong"},
      {a.CheckKeys({"b", "size"}), "f.json: a: unknown key 's'; expected b or size"},
      {root.CheckKeys({"a", "f", "big"}), "f.json: unknown key 'bigs'; did you mean 'big'?"},
  };
  for (const auto& c : cases) EXPECT_EQ(c.status.message(), c.expected);
  EXPECT_EQ(a.CheckKeys({"b", "s"}), OkStatus());
}

}  // namespace
}  // namespace xccl
