// A list is cut at the commas outside of brackets. Each entry is cut into literals and brackets; how many
// names it has is the product of its brackets' counts, which is compared with the limits before the names are
// made. Cost: linear in the text and in the names.
#include "topologies/fabric/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/strings.h"

namespace xccl {
namespace {

constexpr int64_t kMostNames = 1'000'000;
constexpr int64_t kMostBytes = int64_t{64} << 20;
constexpr size_t kMostDigits = 18;  // fits int64_t

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Digits alone, few enough for int64_t.
std::optional<int64_t> NumberOf(std::string_view digits) {
  if (digits.empty() || digits.size() > kMostDigits || !std::ranges::all_of(digits, IsDigit)) return {};
  int64_t number = 0;
  for (const char c : digits) number = number * 10 + (c - '0');
  return number;
}

std::string Padded(int64_t number, size_t width) { return fmt::format("{:0{}}", number, width); }

struct Range {
  int64_t first = 0, last = 0;
  size_t width = 0;  // least digits of a number
};

// A piece of a name: a literal, or a choice of numbers.
struct Piece {
  std::string_view literal;
  std::vector<Range> ranges;  // empty: the literal
  int64_t count = 1;          // of choices, at most kMostNames + 1
  int64_t bytes = 0;          // of the longest choice
};

class Expander {
 public:
  explicit Expander(std::string_view text) : text_(text) {}

  StatusOr<std::vector<std::string>> Expand() {
    for (size_t at = 0; at < text_.size();) {
      if (text_[at] == ',' || IsBlank(text_[at])) {
        ++at;
        continue;
      }
      XCCL_RETURN_IF_ERROR(ReadName(at));
      XCCL_RETURN_IF_ERROR(AddNames());
    }
    if (names_.empty()) return Error("no names; expected names such as gpu[001-016]");
    return std::move(names_);
  }

 private:
  Status Error(std::string_view what) const {
    return InvalidInput(fmt::format("host list '{}': {}", Cleaned(text_, 80), what));
  }

  // Sets pieces_ to the entry at `at`, and `at` to its end.
  Status ReadName(size_t& at) {
    pieces_.clear();
    while (at < text_.size() && text_[at] != ',' && !IsBlank(text_[at])) {
      const size_t end =
          std::min(text_.find_first_of(text_[at] == '[' ? "]" : "[], \t\r\n", at), text_.size());
      const std::string_view piece = text_.substr(at, end - at);
      if (piece.empty())
        return Error(fmt::format("column {}: ']' closes no '['; expected one such as [001-016]", at + 1));
      if (piece[0] == '[') {
        XCCL_RETURN_IF_ERROR(ReadBracket(at, end));
        at = end + 1;
        continue;
      }
      if (std::ranges::any_of(piece, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }))
        return Error(fmt::format("column {}: a name with a control character; expected text", at + 1));
      pieces_.push_back({piece, {}, 1, static_cast<int64_t>(piece.size())});
      at = end;
    }
    return OkStatus();
  }

  // The bracket at `at`, of which `end` is the place of its "]".
  Status ReadBracket(size_t at, size_t end) {
    if (end == text_.size())
      return Error(fmt::format("column {}: no ']' closes '['; expected one such as [001-016]", at + 1));
    Piece piece;
    piece.count = 0;
    for (size_t begin = at + 1; begin <= end;) {
      const size_t stop = std::min(text_.find(',', begin), end);
      const std::string_view part = Trim(text_.substr(begin, stop - begin));
      const size_t dash = part.find('-');
      const std::string_view low = Trim(part.substr(0, dash));
      const std::optional<int64_t> first = NumberOf(low);
      const std::optional<int64_t> last =
          dash == std::string_view::npos ? first : NumberOf(Trim(part.substr(dash + 1)));
      if (!first || !last)
        return Error(fmt::format("column {}: '{}' in brackets; expected a number or a range such as 001-016",
                                 begin + 1, Cleaned(part, 40)));
      if (*first > *last)
        return Error(fmt::format("column {}: the range {} runs backwards; expected its smaller number first",
                                 begin + 1, Cleaned(part, 40)));
      piece.ranges.push_back({*first, *last, low.size()});
      piece.count = std::min(kMostNames + 1, piece.count + std::min(kMostNames + 1, *last - *first + 1));
      const size_t digits = std::max(low.size(), fmt::formatted_size("{}", *last));
      piece.bytes = std::max(piece.bytes, static_cast<int64_t>(digits));
      begin = stop + 1;
    }
    pieces_.push_back(std::move(piece));
    return OkStatus();
  }

  // Adds the names of pieces_, if they keep the limits.
  Status AddNames() {
    int64_t count = 1, bytes = 0;
    for (const Piece& piece : pieces_) {
      count = std::min(kMostNames + 1, count * piece.count);
      bytes += piece.bytes;
    }
    const int64_t names = static_cast<int64_t>(names_.size()) + count;
    if (names > kMostNames) return Error("more than 1,000,000 names; expected the hosts of one cluster");
    bytes_ += count * bytes;
    if (bytes_ > kMostBytes) return Error("more than 64 MiB of names; expected the hosts of one cluster");
    names_.reserve(static_cast<size_t>(names));
    std::vector<std::string> made = {""};
    for (const Piece& piece : pieces_) {
      if (piece.ranges.empty()) {
        for (std::string& name : made) name += piece.literal;
        continue;
      }
      std::vector<std::string> longer;
      longer.reserve(made.size() * static_cast<size_t>(piece.count));
      for (const std::string& name : made)
        for (const Range& range : piece.ranges)
          for (int64_t n = range.first; n <= range.last; ++n) longer.push_back(name + Padded(n, range.width));
      made = std::move(longer);
    }
    std::ranges::move(made, std::back_inserter(names_));
    return OkStatus();
  }

  std::string_view text_;
  std::vector<Piece> pieces_;
  std::vector<std::string> names_;
  int64_t bytes_ = 0;  // an upper bound of those of names_
};

// A name as a prefix, its last number and a suffix.
struct Numbered {
  std::string_view prefix, digits, suffix;
};
Numbered NumberedOf(std::string_view name) {
  size_t end = name.size();
  while (end > 0 && !IsDigit(name[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && IsDigit(name[begin - 1])) --begin;
  return {name.substr(0, begin), name.substr(begin, end - begin), name.substr(end)};
}

}  // namespace

StatusOr<std::vector<std::string>> ExpandHostList(std::string_view text) { return Expander(text).Expand(); }

std::string CompressHostList(std::span<const std::string> names) {
  std::vector<std::string> entries;
  for (size_t i = 0; i < names.size();) {
    const Numbered head = NumberedOf(names[i]);
    std::vector<std::string> ranges;
    size_t next = i;
    for (Numbered low = head; low.prefix == head.prefix && low.suffix == head.suffix;) {
      const std::optional<int64_t> first = NumberOf(low.digits);
      if (!first) break;
      int64_t last = *first;
      ++next;
      while (next < names.size() &&
             names[next] ==
                 fmt::format("{}{}{}", head.prefix, Padded(last + 1, low.digits.size()), head.suffix)) {
        ++last;
        ++next;
      }
      ranges.push_back(last == *first ? std::string(low.digits)
                                      : fmt::format("{}-{}", low.digits, Padded(last, low.digits.size())));
      if (next == names.size()) break;
      low = NumberedOf(names[next]);
    }
    if (next <= i + 1) {
      entries.push_back(names[i]);
      next = i + 1;
    } else {
      entries.push_back(fmt::format("{}[{}]{}", head.prefix, Join(ranges, ","), head.suffix));
    }
    i = next;
  }
  return Join(entries, ",");
}

}  // namespace xccl
