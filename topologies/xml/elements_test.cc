// The table of elements beside the reader and beside docs/xml.md. XCCL_DOCS_FILE=$PWD/docs/xml.md
// bazel run //topologies/xml:elements_test rewrites that page's reference.
#include "topologies/xml/elements.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "topologies/families/families.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

// A document with the element, its required attributes and one more.
std::string DocumentOf(const XmlElement& element, std::string_view one) {
  std::string tag = fmt::format("<{}", element.name);
  for (const XmlAttribute& attribute : element.attributes)
    if (attribute.otherwise.starts_with("required") || attribute.name == one)
      tag += fmt::format(" {}=\"{}\"", attribute.name, attribute.example);
  if (one == "source") tag += " source=\"a datasheet\"";
  const std::string_view name = element.name;
  if (name == "topology") return tag + "><gpu id=\"0\"/></topology>";
  if (name == "host" || name == "cluster")
    return fmt::format("<topology>{}><gpu id=\"0\"/></{}></topology>", tag, name);
  if (name == "fabric")
    return "<topology><cluster hosts=\"4\"><gpu count=\"2\"/>" + tag + "/></cluster></topology>";
  return "<topology><host><gpu count=\"2\"/>" + tag + "/></host></topology>";
}

TEST(XmlElements, TheReaderTakesEveryAttributeOfTheTable) {
  for (const XmlElement& element : XmlElements()) {
    const std::string least = DocumentOf(element, "");
    const StatusOr<Topology> read = ReadNativeXml(least, "t.xml");
    EXPECT_TRUE(read.ok()) << least << ": " << read.status().message();
    EXPECT_TRUE(ReadNativeXml(DocumentOf(element, "source"), "t.xml").ok()) << element.name;
    for (const XmlAttribute& attribute : element.attributes) {
      const std::string document = DocumentOf(element, attribute.name);
      const StatusOr<Topology> with = ReadNativeXml(document, "t.xml");
      // One level over GPUs has nothing to oversubscribe: `spines` does not stand beside it.
      const bool one_level = element.form.ends_with("rails") || element.form == "switch";
      if (one_level && attribute.name == "oversubscription") continue;
      EXPECT_TRUE(with.ok()) << document << ": " << with.status().message();
    }
  }
}

// Only attributes of the table are tried: the reader itself checks that it asks for no attribute that the
// table lacks.
TEST(XmlElements, WhatIsRequiredIsRequired) {
  for (const XmlElement& element : XmlElements())
    for (const XmlAttribute& attribute : element.attributes) {
      if (attribute.otherwise != "required") continue;
      XmlElement without = element;
      std::erase_if(without.attributes,
                    [&](const XmlAttribute& other) { return other.name == attribute.name; });
      // Another form of the element may do without.
      if (element.name == "fabric" && attribute.name == "type") continue;
      EXPECT_FALSE(ReadNativeXml(DocumentOf(without, ""), "t.xml").ok())
          << element.name << " " << attribute.name;
    }
}

TEST(XmlElements, FamiliesAreThoseOfTheFamilies) {
  for (const std::string_view family : FamilyNames())
    EXPECT_TRUE(std::ranges::any_of(XmlElements(), [&](const XmlElement& row) { return row.name == family; }))
        << family;
}

TEST(XmlElements, PageHasTheReference) {
  constexpr std::string_view kFirst = "<!-- made by topologies/xml/elements_test.cc -->\n\n";
  std::string page = ReadFile("docs/xml.md").value();
  const size_t first = page.find(kFirst);
  ASSERT_NE(first, page.npos);
  const size_t begin = first + kFirst.size();
  if (const char* file = std::getenv("XCCL_DOCS_FILE")) {
    ASSERT_TRUE(WriteFileAtomically(file, page.substr(0, begin) + XmlReference()).ok());
    return;
  }
  EXPECT_EQ(page.substr(begin), XmlReference());
}

}  // namespace
}  // namespace xccl
