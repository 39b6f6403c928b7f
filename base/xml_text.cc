// Two passes, both linear. References count only where a parser expands them: not in comments, CDATA
// sections and declarations.
#include "base/xml_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/diagnostics.h"
#include "base/strings.h"

namespace xccl {
namespace {

// The character that "&#233;" at the start of `text` names, and the reference's length; length 0 if there is
// no reference. Numbers that do not fit are the largest that does.
std::pair<uint32_t, size_t> ReadReference(std::string_view text) {
  if (!text.starts_with("&#")) return {0, 0};
  const int base = text.substr(2).starts_with('x') ? 16 : 10;
  const char* begin = text.data() + (base == 16 ? 3 : 2);
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), code, base);
  if (end == begin || end == text.data() + text.size() || *end != ';') return {0, 0};
  return {error == std::errc() ? code : UINT32_MAX, static_cast<size_t>(end - text.data()) + 1};
}

bool IsCharacter(uint32_t code) { return code != 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF); }

// The end of a comment, CDATA section or declaration that starts at `at`; `at` if none does.
size_t EndOfLiteral(std::string_view text, size_t at) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kLiterals = {
      {{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}}};
  for (const auto& [open, close] : kLiterals) {
    if (text.compare(at, open.size(), open) != 0) continue;
    const size_t end = text.find(close, at + open.size());
    return end == std::string_view::npos ? text.size() : end + close.size();
  }
  return at;
}

}  // namespace

Status CheckXmlText(std::string_view text, std::string_view file) {
  const auto bad = [&](size_t at, std::string_view message) {
    return InvalidAt(LocationOfOffset(file, text, at), message);
  };
  if (const size_t at = std::min(ValidUtf8Length(text), text.find('\0')); at < text.size())
    return bad(at, fmt::format("byte {:#04x}; expected UTF-8 text", static_cast<unsigned char>(text[at])));
  for (size_t at = 0; (at = text.find_first_of("<&", at)) != std::string_view::npos;) {
    const size_t after = EndOfLiteral(text, at);
    const auto [code, length] = ReadReference(text.substr(at));
    if (length > 0 && !IsCharacter(code))
      return bad(at, fmt::format("{}: no character; expected one from &#1; to &#x10FFFF;",
                                 Shortened(text.substr(at, length))));
    at = std::max(after, at + 1);
  }
  return OkStatus();
}

}  // namespace xccl
