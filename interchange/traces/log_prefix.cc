// A time stamp is a word with a time 10:00:00 or a date 2024-05-01, a number of seconds with at least three
// decimals, the name of a month or of a day of the week, or the number behind a month.
#include "interchange/traces/log_prefix.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/strings.h"

namespace xccl {
namespace {

constexpr char kStamp = '\1';     // in place of a time stamp
constexpr size_t kLongest = 512;  // bytes of a line that may be its prefix
constexpr std::string_view kDays[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// The length of the word of digits and the signs of times that begins there: 2024-05-01T10:00:00.12Z.
size_t NumberLength(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const char c = text[end];
    const bool inside = end > 0 && IsDigit(text[end - 1]);
    const bool before_digit = end + 1 < text.size() && IsDigit(text[end + 1]);
    if (!IsDigit(c) &&
        !(inside && before_digit && std::string_view(":.,-/+T").find(c) != std::string_view::npos) &&
        !(inside && c == 'Z'))
      break;
    ++end;
  }
  return end;
}

// Does the word have groups of digits with the given lengths, with one of the signs between groups?
bool HasGroups(std::string_view word, const std::vector<size_t>& lengths, std::string_view signs) {
  for (size_t at = 0; at < word.size(); ++at) {
    if (!IsDigit(word[at]) || (at > 0 && IsDigit(word[at - 1]))) continue;
    size_t end = at, group = 0;
    for (; group < lengths.size(); ++group) {
      if (group > 0 && (end >= word.size() || signs.find(word[end++]) == signs.npos)) break;
      size_t digits = 0;
      while (end < word.size() && IsDigit(word[end])) ++digits, ++end;
      if (digits != lengths[group]) break;
    }
    if (group == lengths.size()) return true;
  }
  return false;
}

// 1714557600.123: one point, at least three decimals.
bool IsSeconds(std::string_view word) {
  const size_t point = word.find('.');
  return point != word.npos && word.find_first_not_of("0123456789", point + 1) == word.npos &&
         word.find_first_not_of("0123456789") == point && word.size() - point > 3;
}

bool IsStamp(std::string_view word) {
  return HasGroups(word, {2, 2, 2}, ":") || HasGroups(word, {4, 2, 2}, "-/") || IsSeconds(word);
}

}  // namespace

StampedLine::StampedLine(std::string_view of_log) : line(of_log) {
  const auto add = [&](size_t from, size_t to, bool stamp) {
    for (size_t at = from; at < to && !stamp; ++at) {
      text += line[at];
      end.push_back(at + 1);
    }
    if (!stamp) return;
    text += kStamp;
    end.push_back(to);
  };
  bool behind_month = false;
  for (size_t at = 0, next = 0; at < line.size() && at < kLongest; at = next) {
    next = at + 1;
    if (IsLetter(line[at])) {
      while (next < line.size() && IsLetter(line[next])) ++next;
      const std::string_view word = line.substr(at, next - at);
      behind_month = std::ranges::find(kMonths, word) != std::end(kMonths);
      add(at, next, behind_month || std::ranges::find(kDays, word) != std::end(kDays));
    } else if (IsDigit(line[at])) {
      next = at + NumberLength(line.substr(at));
      add(at, next, behind_month || IsStamp(line.substr(at, next - at)));
      behind_month = false;
    } else if (behind_month && line[at] == ' ') {  // "May  1" and "May 10"
      while (next < line.size() && line[next] == ' ') ++next;
      add(at, at + 1, false);
      end.back() = next;
    } else {
      behind_month = false;
      add(at, next, false);
    }
  }
}

LogPrefix::LogPrefix(std::string_view prefix) {
  if (!Trim(prefix).empty()) pattern_ = StampedLine(prefix).text;
}

std::optional<std::string_view> LogPrefix::Behind(const StampedLine& line) const {
  if (pattern_.empty()) return line.line;
  if (!line.text.starts_with(pattern_)) return std::nullopt;
  return line.line.substr(line.end[pattern_.size() - 1]);
}

}  // namespace xccl
