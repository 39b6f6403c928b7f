// Reads the fields of one line from left to right.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace xccl {

class LineScanner {
 public:
  explicit LineScanner(std::string_view line) : line_(line) {}

  std::string_view rest() const { return line_.substr(at_); }
  size_t at() const { return at_; }  // bytes that are read
  bool AtEnd() const { return at_ == line_.size(); }

  void SkipBlanks() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
  }
  // Takes the text if it comes next; else takes nothing.
  bool Take(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  // The bytes up to a blank or the end.
  std::string_view Word() {
    const std::string_view word = rest().substr(0, rest().find_first_of(" \t"));
    at_ += word.size();
    return word;
  }
  // A decimal number of at most 9 digits.
  std::optional<int32_t> Number() {
    int32_t number = 0;
    size_t digits = 0;
    for (; digits < rest().size() && rest()[digits] >= '0' && rest()[digits] <= '9'; ++digits) {
      if (digits == 9) return std::nullopt;
      number = number * 10 + (rest()[digits] - '0');
    }
    if (digits == 0) return std::nullopt;
    at_ += digits;
    return number;
  }
  // A hexadecimal number of at most 64 bits, with or without 0x.
  std::optional<uint64_t> Hex() {
    size_t begin = at_ + (rest().starts_with("0x") || rest().starts_with("0X") ? 2 : 0);
    size_t end = begin;
    uint64_t number = 0;
    for (; end < line_.size(); ++end) {
      const int digit = Digit(line_[end]);
      if (digit < 0) break;
      if (number >> 60 != 0) return std::nullopt;
      number = number << 4 | static_cast<uint64_t>(digit);
    }
    if (end == begin) return std::nullopt;
    at_ = end;
    return number;
  }

 private:
  static int Digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  std::string_view line_;
  size_t at_ = 0;
};

}  // namespace xccl
