#include "base/strings.h"

#include <algorithm>
#include <cctype>

namespace xccl {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// One character of UTF-8 that terminals and readers do not show as itself: controls of ASCII and Latin-1
// (U+0080 to U+009F), and marks of width and direction (U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F,
// U+FEFF).
bool IsControl(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (character.size() != 3) return false;
  if (byte(0) == 0xe2 && byte(1) == 0x80)
    return (byte(2) >= 0x8b && byte(2) <= 0x8f) || (byte(2) >= 0xa8 && byte(2) <= 0xae);
  return (byte(0) == 0xe2 && byte(1) == 0x81 && byte(2) >= 0xa0 && byte(2) <= 0xaf) ||
         (byte(0) == 0xef && byte(1) == 0xbb && byte(2) == 0xbf);
}

}  // namespace

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> fields;
  while (true) {
    const size_t end = text.find(separator);
    fields.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return lower;
}

std::string Join(std::span<const std::string> items, std::string_view separator) {
  std::string joined;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) joined += separator;
    joined += items[i];
  }
  return joined;
}

std::string EscapedXml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else if (static_cast<unsigned char>(c) < ' ')
      escaped += "&#" + std::to_string(static_cast<int>(c)) + ";";
    else
      escaped += c;
  }
  return escaped;
}

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = Trim(text); !text.empty(); text = Trim(text)) {
    words.push_back(text.substr(0, text.find_first_of(kBlanks)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

std::string Counted(int64_t count, std::string_view one) {
  const char* const ending = count == 1 ? "" : one.ends_with("ch") ? "es" : "s";
  return std::to_string(count) + " " + std::string(one) + ending;
}

std::string Either(std::span<const std::string> items) {
  if (items.size() < 2) return Join(items, "");
  return Join(items.first(items.size() - 1), ", ") + " or " + items.back();
}

std::string SomeOf(std::span<const std::string> items) {
  constexpr size_t kShown = 5;
  if (items.size() <= kShown + 1) return Join(items, ", ");
  return Join(items.first(kShown), ", ") + " and " + std::to_string(items.size() - kShown) + " more";
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

bool HasUtf16Mark(std::string_view text) {
  return text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
}

size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code >= kLeast[length] && code <= 0x10FFFF && !surrogate ? length : 0;
}

size_t ValidUtf8Length(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const size_t length = Utf8Length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string ReplaceBadUtf8(std::string_view text) {
  std::string valid;
  while (true) {
    const size_t length = ValidUtf8Length(text);
    valid += text.substr(0, length);
    if (length == text.size()) return valid;
    valid += "\xEF\xBF\xBD";
    text.remove_prefix(length + 1);
  }
}

std::string Shortened(std::string_view text) {
  constexpr size_t kMost = 80;
  if (text.size() <= kMost) return std::string(text);
  // A character is not cut in two.
  size_t end = kMost;
  while (end > kMost - 4 && (static_cast<unsigned char>(text[end]) >> 6) == 2) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string Cleaned(std::string_view text, size_t most) {
  std::string cleaned;
  for (std::string_view left = text; !left.empty();) {
    const size_t length = Utf8Length(left);
    if (cleaned.size() + std::max<size_t>(length, 1) > most) return cleaned + "...";
    if (length == 0 || IsControl(left.substr(0, length)))
      cleaned.push_back('?');
    else
      cleaned.append(left.substr(0, length));
    left.remove_prefix(std::max<size_t>(length, 1));
  }
  return cleaned;
}

namespace {

constexpr size_t kLongestCompared = 64;   // names that a person could have meant are shorter
constexpr size_t kMostCompared = 10'000;  // known names
constexpr size_t kEdit = 2, kOtherCase = 1;

size_t ReplaceCost(char a, char b) {
  if (a == b) return 0;
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b))
             ? kOtherCase
             : kEdit;
}

// The weighted edit distance (insertions, deletions, replacements, neighbours exchanged), row by row.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j * kEdit;
  for (size_t i = 1; i <= a.size(); ++i) {
    cost[i][0] = i * kEdit;
    for (size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j - 1] + ReplaceCost(a[i - 1], b[j - 1]), cost[i - 1][j] + kEdit,
                             cost[i][j - 1] + kEdit});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + kEdit);
    }
  }
  return cost[a.size()][b.size()];
}

// The most that a meant name may be away. It is small for short names, since two edits turn any three letters
// into any other three.
size_t MostDistance(std::string_view name) {
  constexpr size_t kShortName = 4;
  return kEdit * (name.size() <= kShortName ? 1 : std::max<size_t>(2, name.size() / 3));
}

}  // namespace

std::string NearestName(std::string_view name, std::span<const std::string_view> known) {
  const auto same_letter = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  for (const std::string_view candidate : known)  // however short, a name in another case is meant
    if (candidate != name && std::ranges::equal(candidate, name, same_letter)) return std::string(candidate);
  std::string_view best;
  size_t best_distance = MostDistance(name) + 1;
  if (name.size() > kLongestCompared) return "";
  size_t compared = 0;
  for (std::string_view candidate : known) {
    const size_t least =
        kEdit * (std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size()));
    if (least >= best_distance) continue;
    if (++compared > kMostCompared) break;
    const size_t distance = EditDistance(name, candidate);
    if (distance < best_distance && distance < kEdit * candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return std::string(best);
}

std::string DidYouMean(std::string_view name, std::span<const std::string_view> known) {
  constexpr size_t kLeastBeginning = 4, kMostBeginning = 16;
  std::string nearest;
  // However much is missing, the beginning of a name means the shortest name that begins so.
  if (name.size() >= kLeastBeginning && name.size() <= kMostBeginning)
    for (const std::string_view candidate : known)
      if (candidate.starts_with(name) && (nearest.empty() || candidate.size() < nearest.size()))
        nearest = candidate;
  if (nearest.empty()) nearest = NearestName(name, known);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

StatusOr<size_t> IndexOfName(std::string_view what, std::string_view name,
                             std::span<const std::string_view> known) {
  const auto found = std::find(known.begin(), known.end(), name);
  if (found != known.end()) return static_cast<size_t>(found - known.begin());
  std::string meant = DidYouMean(name, known);
  if (meant.empty())
    meant = "; expected one of " + Join(std::vector<std::string>(known.begin(), known.end()), ", ");
  return InvalidInput("no " + std::string(what) + " '" + std::string(name) + "'" + meant);
}

uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace xccl
