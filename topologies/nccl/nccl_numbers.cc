#include "topologies/nccl/nccl_numbers.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

namespace xccl {
namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";

void SkipBlanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
}

// Takes a sign from the start. True: minus.
bool TakeSign(std::string_view& text) {
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  return minus;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool BeginsAsHex(std::string_view text) {
  if (text.size() < 3 || text[0] != '0' || (text[1] != 'x' && text[1] != 'X')) return false;
  const char c = text[2];
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool OnlyBlanks(std::string_view text) { return text.find_first_not_of(kBlanks) == std::string_view::npos; }

}  // namespace

LeadingNumber<int64_t> ReadLeadingInteger(std::string_view text) {
  SkipBlanks(text);
  const bool minus = TakeSign(text);
  const bool hex = BeginsAsHex(text);
  const bool octal = !hex && text.size() > 1 && text[0] == '0' && IsDigit(text[1]);
  if (hex) text.remove_prefix(2);
  if (text.empty() || text[0] == '-') return {};
  int64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value, hex ? 16 : octal ? 8 : 10);
  if (error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) value = std::numeric_limits<int64_t>::max();
  return {minus ? -value : value, !octal && OnlyBlanks({end, static_cast<size_t>(last - end)})};
}

LeadingNumber<double> ReadLeadingFloat(std::string_view text) {
  SkipBlanks(text);
  const bool minus = TakeSign(text);
  const bool hex = BeginsAsHex(text);
  if (hex) text.remove_prefix(2);
  if (text.empty() || text[0] == '-') return {};
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] =
      std::from_chars(text.data(), last, value, hex ? std::chars_format::hex : std::chars_format::general);
  if (error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) value = std::numeric_limits<double>::infinity();
  return {minus ? -value : value, OnlyBlanks({end, static_cast<size_t>(last - end)})};
}

}  // namespace xccl
