#include "topologies/xml/parse_xml.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/diagnostics.h"
#include "base/xml_text.h"

namespace xccl {
namespace {

std::string DescribeParseError(const pugi::xml_parse_result& parsed, std::string_view text,
                               std::string_view root) {
  constexpr std::pair<pugi::xml_parse_status, std::string_view> kUnfinished[] = {
      {pugi::status_bad_start_element, "a start tag"}, {pugi::status_bad_end_element, "an end tag"},
      {pugi::status_bad_attribute, "an attribute"},    {pugi::status_bad_comment, "a comment"},
      {pugi::status_bad_pi, "a declaration"},          {pugi::status_bad_cdata, "a CDATA section"},
      {pugi::status_bad_doctype, "a DOCTYPE"},
  };
  const size_t rest = std::min(static_cast<size_t>(parsed.offset), text.size());
  const bool at_end = text.find('>', rest) == std::string_view::npos;
  for (const auto& [status, what] : kUnfinished) {
    if (status != parsed.status) continue;
    if (at_end) return fmt::format("the file ends inside {}; expected more, up to </{}>", what, root);
    return fmt::format("malformed XML: {} that is not finished{}", what,
                       status == pugi::status_bad_attribute ? "; expected name=\"value\"" : "");
  }
  if (parsed.status == pugi::status_end_element_mismatch)
    return at_end ? fmt::format("the file ends early; expected more, up to </{}>", root)
                  : "malformed XML: an end tag that does not match its start tag";
  if (parsed.status == pugi::status_unrecognized_tag) return "malformed XML: '<' that starts no tag";
  return fmt::format("malformed XML: {}", parsed.description());
}

// The length of what starts with '<' and is no element: a comment, a declaration, a DOCTYPE with what it
// declares. 0: none of them. npos: it does not end.
size_t MarkupLength(std::string_view text) {
  const auto to_end = [&](std::string_view end) {
    const size_t close = text.find(end);
    return close == std::string_view::npos ? close : close + end.size();
  };
  if (text.starts_with("<!--")) return to_end("-->");
  if (text.starts_with("<?")) return to_end("?>");
  if (!text.starts_with("<!")) return 0;
  int open = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '<') {
      ++open;
    } else if (c == '>' && --open == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

bool BeginsName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80) != 0;
}

std::string_view WithoutPrefix(std::string_view name) {
  const size_t colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

// The walk needs no stack: elements know their parents.
void DropNamespaces(pugi::xml_document& document) {
  struct Walker : pugi::xml_tree_walker {
    bool for_each(pugi::xml_node& node) override {
      if (node.type() != pugi::node_element) return true;
      const std::string_view name = node.name();
      if (const std::string_view local = WithoutPrefix(name); local.size() < name.size() && !local.empty())
        node.set_name(std::string(local).c_str());
      for (pugi::xml_attribute attribute = node.first_attribute(); attribute;) {
        const pugi::xml_attribute next = attribute.next_attribute();
        const std::string_view key = attribute.name();
        if (key == "xmlns" || key.starts_with("xmlns:")) node.remove_attribute(attribute);
        attribute = next;
      }
      return true;
    }
  };
  Walker walker;
  document.traverse(walker);
}

}  // namespace

std::string_view RootName(std::string_view text) {
  while (true) {
    text.remove_prefix(std::min(text.find('<'), text.size()));
    if (text.size() < 2) return {};
    const size_t markup = MarkupLength(text);
    if (markup == std::string_view::npos) return {};
    if (markup == 0 && BeginsName(text[1])) break;
    text.remove_prefix(std::max<size_t>(markup, 1));
  }
  return WithoutPrefix(text.substr(1, text.find_first_of(" \t\r\n/>", 1) - 1));
}

Status ParseXml(std::string_view text, std::string_view file, std::string_view root,
                pugi::xml_document& document) {
  XCCL_RETURN_IF_ERROR(CheckXmlText(text, file));
  const auto at = [&](size_t offset, std::string_view message) {
    return InvalidAt(LocationOfOffset(file, text, std::min(offset, text.size())), message);
  };
  // As a fragment, so that text beside the root is kept and found.
  const pugi::xml_parse_result parsed = document.load_buffer(
      text.data(), text.size(), pugi::parse_default | pugi::parse_fragment, pugi::encoding_utf8);
  if (!parsed) return at(static_cast<size_t>(parsed.offset), DescribeParseError(parsed, text, root));
  const pugi::xml_node first = document.document_element();
  if (!first) return at(text.size(), fmt::format("no element; expected <{}>", root));
  for (const pugi::xml_node& node : document.children()) {
    const auto offset = static_cast<size_t>(std::max<ptrdiff_t>(0, node.offset_debug()));
    if (node.type() == pugi::node_element && node != first)
      return at(offset - 1, fmt::format("a second root element; expected one <{}>", root));
    if (node.type() == pugi::node_pcdata || node.type() == pugi::node_cdata)
      return at(std::min(text.find_first_not_of(" \t\r\n", offset), text.size()),
                fmt::format("text beside <{}>; expected nothing but comments", root));
  }
  DropNamespaces(document);
  return OkStatus();
}

}  // namespace xccl
