// The elements of native XML as a table: where each may stand, its attributes, and what they say. The reader
// takes from it which elements there are and where, and may ask for no attribute that is not here. The
// reference of docs/xml.md is written from it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xccl {

enum class XmlContext { kTopology, kHost, kCluster };
std::string_view ToString(XmlContext context);  // "topology"

struct XmlAttribute {
  std::string_view name;
  std::string_view example;    // a value that is taken
  std::string_view otherwise;  // its default; begins with "required" where it may not be missing
  std::string_view meaning;
};

// One form of an element. A fabric and a fat-tree have several, of which attributes choose one.
struct XmlElement {
  std::string_view name;
  std::string_view form;  // empty: the only one
  std::vector<XmlContext> stands_in;
  std::string_view meaning;
  std::vector<XmlAttribute> attributes;
};

// Forms of one element follow each other. Every element may also have a `source`.
std::span<const XmlElement> XmlElements();

bool StandsIn(std::string_view element, XmlContext context);
// Whether a form of the element has the attribute.
bool HasAttribute(std::string_view element, std::string_view attribute);

// A section in Markdown for each form: what it is, where it stands, and a table of its attributes.
std::string XmlReference();

}  // namespace xccl
