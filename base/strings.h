// Small text helpers that the standard library lacks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace xccl {

std::vector<std::string> Split(std::string_view text, char separator);  // keeps empty fields
std::string_view Trim(std::string_view text);                           // removes blanks at both ends
std::vector<std::string_view> WordsOf(std::string_view text);           // its words, separated by blanks
bool IsDigit(char c);                                                   // of ASCII
std::string Lower(std::string_view text);  // in lower case; bytes beyond ASCII stay
std::string Join(std::span<const std::string> items, std::string_view separator);
std::string Counted(int64_t count, std::string_view one);  // "1 step", "2 steps", "2 switches"
std::string Either(std::span<const std::string> items);    // "a, b or c"
std::string SomeOf(std::span<const std::string> items);    // "a, b"; of seven: "a, b, c, d, e and 2 more"

// The text without the byte-order mark of UTF-8 that some editors write first.
std::string_view WithoutByteOrderMark(std::string_view text);
// Does it begin with a byte-order mark of UTF-16, as what a shell of Windows redirects does?
bool HasUtf16Mark(std::string_view text);

// The text as an attribute or content of XML or HTML: &, <, > and " by name, control characters by number.
std::string EscapedXml(std::string_view text);

// The length of the valid UTF-8 sequence at the start of `text`, or 0. Requires: text is not empty.
size_t Utf8Length(std::string_view text);
// The length of the longest start of `text` that is UTF-8.
size_t ValidUtf8Length(std::string_view text);
// The text with U+FFFD in place of each byte that is not UTF-8.
std::string ReplaceBadUtf8(std::string_view text);

// The text as a message quotes it: what is longer than 80 bytes is cut and ends in "...".
std::string Shortened(std::string_view text);

// Another process's text as messages quote it: at most `most` bytes, with "?" for each control, mark of
// direction and byte that is not UTF-8. A longer text ends in "..." behind those bytes.
std::string Cleaned(std::string_view text, size_t most = 256);

// The known name with the least edit distance to `name`, or "" if none is close enough to suggest. Cost:
// linear in the known names, of which at most some thousands of like length are compared; none with a long
// `name`.
std::string NearestName(std::string_view name, std::span<const std::string_view> known);
// "; did you mean 'torus'?" or "".
std::string DidYouMean(std::string_view name, std::span<const std::string_view> known);

// The index of a name among those known. Errors: kInvalidInput "no WHAT 'name'; did you mean
// 'near'?", or "...; expected one of a, b, c" where none is near.
StatusOr<size_t> IndexOfName(std::string_view what, std::string_view name,
                             std::span<const std::string_view> known);

// FNV-1a: it tells apart texts that were not made to collide.
uint64_t HashOf(std::string_view text);

}  // namespace xccl
