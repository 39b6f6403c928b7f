#include "tests/testing/mutate_text.h"

#include <array>
#include <cctype>
#include <utility>
#include <vector>

namespace xccl::testing {
namespace {

struct Span {
  size_t first = 0, size = 0;
  bool operator==(const Span&) const = default;
};

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Runs of digits with a sign and a fraction, if they have one.
std::vector<Span> Numbers(std::string_view text) {
  std::vector<Span> numbers;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!IsDigit(text[i])) continue;
    const size_t first = i > 0 && text[i - 1] == '-' ? i - 1 : i;
    while (i < text.size() && (IsDigit(text[i]) || text[i] == '.')) ++i;
    numbers.push_back({first, i - first});
  }
  return numbers;
}

std::vector<Span> Quoted(std::string_view text) {
  std::vector<Span> quoted;
  for (size_t i = text.find('"'); i != std::string_view::npos; i = text.find('"', i + 1)) {
    const size_t end = text.find('"', i + 1);
    if (end == std::string_view::npos) break;
    quoted.push_back({i + 1, end - i - 1});
    i = end;
  }
  return quoted;
}

// XML elements with their contents, without regard to equal names inside; JSON lists and objects; else lines.
std::vector<Span> Pieces(std::string_view text) {
  std::vector<Span> pieces;
  const bool xml = text.find('<') != std::string_view::npos;
  const std::string_view opens = xml ? "<" : text.find('{') != std::string_view::npos ? "{[" : "\n";
  for (size_t i = text.find_first_of(opens); i != std::string_view::npos;
       i = text.find_first_of(opens, i + 1)) {
    size_t end = std::string_view::npos;
    if (xml) {
      if (i + 1 < text.size() && !std::isalpha(static_cast<unsigned char>(text[i + 1]))) continue;
      end = text.find('>', i);
      if (end != std::string_view::npos && text[end - 1] != '/') {
        const size_t name = text.find_first_of(" \t\r\n>", i);
        const size_t close = text.find("</" + std::string(text.substr(i + 1, name - i - 1)), end);
        if (close != std::string_view::npos) end = text.find('>', close);
      }
    } else {
      end = opens == "\n" ? text.find('\n', i + 1) : text.find(text[i] == '{' ? '}' : ']', i);
    }
    if (end == std::string_view::npos) continue;
    pieces.push_back({i, end + (opens == "\n" ? 0 : 1) - i});
  }
  return pieces;
}

std::string OtherNumber(std::string_view text, const std::vector<Span>& numbers, Random& random) {
  constexpr std::array<std::string_view, 12> kExtremes = {
      "0", "1", "-1", "2", "7", "64", "2147483648", "65536", "1e999", "0.5", "1000", "9223372036854775807"};
  if (random.Below(2) == 0) return std::string(kExtremes[random.Below(kExtremes.size())]);
  const Span& other = numbers[random.Below(numbers.size())];
  std::string number(text.substr(other.first, other.size));
  if (random.Below(2) == 0 && IsDigit(number.back()))
    number.back() = static_cast<char>('0' + (number.back() - '0' + 1) % 10);
  return number;
}

std::string MutateBytes(std::string text, Random& random) {
  const size_t at = random.Below(text.size());
  switch (random.Below(4)) {
    case 0:
      text.resize(at);
      return text;
    case 1:
      return text.erase(at, 1 + random.Below(20));
    case 2:
      return text.insert(at, text.substr(random.Below(text.size()), 1 + random.Below(40)));
    default:
      text[at] = static_cast<char>(random.Below(256));
      return text;
  }
}

std::string MutatePieces(std::string text, const std::vector<Span>& pieces, Random& random) {
  const Span& piece = pieces[random.Below(pieces.size())];
  const std::string copy = text.substr(piece.first, piece.size);
  switch (random.Below(3)) {
    case 0:
      return text.erase(piece.first, piece.size);
    case 1:
      return text.insert(piece.first + piece.size, copy);
    default:
      return text.insert(pieces[random.Below(pieces.size())].first, copy);
  }
}

}  // namespace

std::string MutateText(std::string_view text, Random& random) {
  std::string changed(text);
  if (changed.empty()) return changed;
  const uint64_t kind = random.Below(8);
  const std::vector<Span> numbers = kind < 3 ? Numbers(text) : std::vector<Span>();
  if (!numbers.empty()) {
    const Span& number = numbers[random.Below(numbers.size())];
    return changed.replace(number.first, number.size, OtherNumber(text, numbers, random));
  }
  const std::vector<Span> quoted = kind < 5 ? Quoted(text) : std::vector<Span>();
  if (!quoted.empty()) {
    const Span &to = quoted[random.Below(quoted.size())], &from = quoted[random.Below(quoted.size())];
    return changed.replace(to.first, to.size, std::string(text.substr(from.first, from.size)));
  }
  const std::vector<Span> pieces = kind < 7 ? Pieces(text) : std::vector<Span>();
  if (!pieces.empty()) return MutatePieces(std::move(changed), pieces, random);
  return MutateBytes(std::move(changed), random);
}

}  // namespace xccl::testing
