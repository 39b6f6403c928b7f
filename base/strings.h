// Small text helpers that the standard library lacks.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace xccl {

std::vector<std::string> Split(std::string_view text, char separator);  // keeps empty fields
std::string_view Trim(std::string_view text);                           // removes blanks at both ends
std::string Join(std::span<const std::string> items, std::string_view separator);

// The text as an attribute or content of XML or HTML: &, <, > and " by name, control characters by number.
std::string EscapedXml(std::string_view text);

// The length of the valid UTF-8 sequence at the start of `text`, or 0. Requires: text is not empty.
size_t Utf8Length(std::string_view text);

// The known name with the least edit distance to `name`, or "" if none is close enough to suggest.
std::string NearestName(std::string_view name, std::span<const std::string_view> known);
// "; did you mean 'torus'?" or "".
std::string DidYouMean(std::string_view name, std::span<const std::string_view> known);

// The index of a name among those known. Errors: kInvalidInput "no WHAT 'name'; did you mean ...?".
StatusOr<size_t> IndexOfName(std::string_view what, std::string_view name,
                             std::span<const std::string_view> known);

}  // namespace xccl
