// What the writers of the page's JSON share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "base/json/json_writer.h"

namespace xccl::view {

// Digit `share` × 63, rounded, of base 64.
inline char Digit(double share) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return kDigits[static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * 63))];
}

// "key": [value(item), ...], of whole numbers.
template <typename Items, typename Value>
void Column(JsonWriter& json, const char* key, const Items& items, Value&& value) {
  json.Key(key);
  json.Integers(items, value);
}

// "key": "...", a letter for each item.
template <typename Items, typename Letter>
void Letters(JsonWriter& json, const char* key, const Items& items, Letter&& letter) {
  std::string text;
  for (const auto& item : items) text += letter(item);
  json.Member(key, text);
}

}  // namespace xccl::view
