// Writes JSON as a stream: values go out in the order of the calls, and only one buffer is held. Equal calls
// give equal bytes. A container opened with Layout::kLines puts each entry on its own line.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace xccl {

// Every Begin needs its End, and in an object every value needs a Key before it. Both are checked.
class JsonWriter {
 public:
  enum class Layout : uint8_t { kInline, kLines };

  explicit JsonWriter(std::ostream& out) : out_(out) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;
  // Ends the text with a line break and flushes it to the stream. Requires: one complete value was written.
  void Finish();

  void BeginObject(Layout layout = Layout::kInline) { Begin('{', '}', layout); }
  void EndObject() { End('}'); }
  void BeginArray(Layout layout = Layout::kInline) { Begin('[', ']', layout); }
  void EndArray() { End(']'); }
  void Key(std::string_view key);

  void Integer(int64_t value);
  void Unsigned(uint64_t value);
  void Number(double value);  // shortest text that reads back to the same value. Requires: finite
  void Real(double value);    // as Number, but never as an integer: 4.0
  void Bool(bool value);
  void Null();
  // Each byte that is not valid UTF-8 is written as the character U+0080..U+00FF.
  void String(std::string_view value);
  // A truth value, number or text; an id as its number; of anything else that can be iterated, an array.
  template <typename T>
  void Value(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      Bool(value);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      Unsigned(value);
    } else if constexpr (std::is_integral_v<T>) {
      Integer(value);
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      String(value);
    } else if constexpr (requires { value.index(); }) {
      Integer(value.value);
    } else {
      BeginArray();
      for (const auto& item : value) Value(item);
      EndArray();
    }
  }
  // A key and its value; of an absent value, nothing.
  template <typename T>
  void Member(std::string_view key, const T& value) {
    Key(key);
    Value(value);
  }
  template <typename T>
  void Member(std::string_view key, const std::optional<T>& value) {
    if (value) Member(key, *value);
  }
  // An array of value(item) for every item.
  template <typename Items, typename Value>
  void Integers(const Items& items, Value&& value) {
    BeginArray();
    for (const auto& item : items) Integer(static_cast<int64_t>(value(item)));
    EndArray();
  }

 private:
  struct Level {
    char close;
    bool lines;
    bool empty = true;
  };
  void Begin(char open, char close, Layout layout);
  void End(char close);
  void BeforeValue();
  void Separate();
  void Quoted(std::string_view text);
  void Raw(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= size_t{1} << 16) Flush();
  }
  void Flush();

  std::ostream& out_;
  std::string buffer_;
  std::vector<Level> levels_;
  bool after_key_ = false;
  bool done_ = false;
};

}  // namespace xccl
