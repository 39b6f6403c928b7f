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

}  // namespace

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
  return OkStatus();
}

}  // namespace xccl
