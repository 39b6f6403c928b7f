// Helper functions that the writers of the page's JSON share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json/json_writer.h"

namespace xccl::view {

// Returns `share` (0 to 1) as one base-64 digit with the value `share` × 63, rounded.
inline char Digit(double share) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return kDigits[static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * 63))];
}

// Writes "key": [value(item), ...], a list of whole numbers.
template <typename Items, typename Value>
void Column(JsonWriter& json, const char* key, const Items& items, Value&& value) {
  json.Key(key);
  json.Integers(items, value);
}

// Writes "key": "...", a string with one letter for each item.
template <typename Items, typename Letter>
void Letters(JsonWriter& json, const char* key, const Items& items, Letter&& letter) {
  std::string text;
  for (const auto& item : items) text += letter(item);
  json.Member(key, text);
}

// Returns the JSON with every '<' escaped, so that the JSON cannot end the script element that contains it.
// JSON has '<' only within strings.
inline std::string InScript(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text;
}

// Returns the page with the mark @XCCL_DATA@ replaced by `data`. Requires that the page has the mark once.
inline std::string WithData(std::string_view page, std::string_view data) {
  constexpr std::string_view kMark = "@XCCL_DATA@";
  const size_t mark = page.find(kMark);
  XCCL_CHECK(mark != std::string_view::npos);
  std::string text(page.substr(0, mark));
  text += data;
  text += page.substr(mark + kMark.size());
  return text;
}

}  // namespace xccl::view
