#include "base/xml_text.h"

#include <gtest/gtest.h>

#include <string>

namespace xccl {
namespace {

using std::string_literals::operator""s;

TEST(XmlText, WhatIsAccepted) {
  for (const char* text : {"", "<a b=\"&#233;&#xE9;&#9;&#x10FFFF;&amp;&#x;&#;&#12\"/>", "<a>\xC3\xA9</a>",
                           "&#0", "<!-- &#0; --><![CDATA[&#xD800;]]><?x &#0;?>", "<!-- &#0;"})
    EXPECT_EQ(CheckXmlText(text, "t.xml").message(), "") << text;
}

TEST(XmlText, CharactersThatAreNone) {
  const struct {
    std::string text, message;
  } rows[] = {
      {"<a>\n b=\"a&#0;b\"/>", "t.xml:2:6: &#0;: no character; expected one from &#1; to &#x10FFFF;"},
      {"&#x0;", "t.xml:1:1: &#x0;: no character; expected one from &#1; to &#x10FFFF;"},
      {"&#xD800;", "t.xml:1:1: &#xD800;: no character; expected one from &#1; to &#x10FFFF;"},
      {"&#57343;", "t.xml:1:1: &#57343;: no character; expected one from &#1; to &#x10FFFF;"},
      {"&#x110000;", "t.xml:1:1: &#x110000;: no character; expected one from &#1; to &#x10FFFF;"},
      {"&#xFFFFFFFF;", "t.xml:1:1: &#xFFFFFFFF;: no character; expected one from &#1; to &#x10FFFF;"},
      {"&#99999999999999999999;",
       "t.xml:1:1: &#99999999999999999999;: no character; expected one from &#1; to &#x10FFFF;"},
      {"<!-- --> &#0;", "t.xml:1:10: &#0;: no character; expected one from &#1; to &#x10FFFF;"},
      {"a\0b"s, "t.xml:1:2: byte 0x00; expected UTF-8 text"},
      {"a\xe9", "t.xml:1:2: byte 0xe9; expected UTF-8 text"},
  };
  for (const auto& row : rows) EXPECT_EQ(CheckXmlText(row.text, "t.xml").message(), row.message);
}

}  // namespace
}  // namespace xccl
