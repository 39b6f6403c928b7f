#include "base/units.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>

#include "base/strings.h"

namespace xccl {
namespace {

struct Unit {
  std::string_view name;
  int64_t scale;
};

constexpr int64_t kKi = 1024, kMi = kKi * 1024, kGi = kMi * 1024, kTi = kGi * 1024, kPi = kTi * 1024,
                  kEi = kPi * 1024;

constexpr std::array<Unit, 20> kSizeUnits = {{{"", 1},
                                              {"B", 1},
                                              {"K", kKi},
                                              {"M", kMi},
                                              {"G", kGi},
                                              {"T", kTi},
                                              {"P", kPi},
                                              {"E", kEi},
                                              {"KiB", kKi},
                                              {"MiB", kMi},
                                              {"GiB", kGi},
                                              {"TiB", kTi},
                                              {"PiB", kPi},
                                              {"EiB", kEi},
                                              {"KB", 1'000},
                                              {"MB", 1'000'000},
                                              {"GB", 1'000'000'000},
                                              {"TB", 1'000'000'000'000},
                                              {"PB", 1'000'000'000'000'000},
                                              {"EB", 1'000'000'000'000'000'000}}};
constexpr std::array<Unit, 5> kTimeUnits = {
    {{"ps", 1}, {"ns", kPsPerNs}, {"us", kPsPerUs}, {"ms", 1'000'000'000}, {"s", kPsPerSecond}}};
// Rates in bits are scaled to bytes, which is exact for every unit here.
constexpr std::array<Unit, 11> kBandwidthUnits = {{{"B/s", 1},
                                                   {"KB/s", 1'000},
                                                   {"MB/s", 1'000'000},
                                                   {"GB/s", 1'000'000'000},
                                                   {"TB/s", 1'000'000'000'000},
                                                   {"KiB/s", kKi},
                                                   {"MiB/s", kMi},
                                                   {"GiB/s", kGi},
                                                   {"Mbit/s", 125'000},
                                                   {"Gbit/s", 125'000'000},
                                                   {"Tbit/s", 125'000'000'000}}};

enum class Fraction : uint8_t {
  kExact,    // a value between two whole numbers is an error
  kRounded,  // such a value is the nearest whole number; decimals beyond the 17th are ignored
};

// If a suffix such as "Gb/s", "Gbps" or "Mib" is a number of bits, the same suffix in bytes: "GB/s".
// Otherwise empty. "Gbit/s" is no suffix of this kind.
std::string BytesOfBits(std::string_view suffix, std::span<const Unit> units) {
  std::string rest(suffix);
  const std::string ending = rest.ends_with("ps") ? "ps" : rest.ends_with("/s") ? "/s" : "";
  rest.resize(rest.size() - ending.size());
  if (!rest.ends_with('b')) return "";
  rest.back() = 'B';
  if (!ending.empty()) {  // a rate may be written in small letters; a size such as "64mb" is a slip of case
    rest[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(rest[0])));
    rest += "/s";
  }
  const auto is_unit = [&](const Unit& unit) { return unit.name == rest; };
  return std::ranges::any_of(units, is_unit) ? rest : "";
}

// The error for a number of bits where bytes are counted. `number` and `bytes` are the value's digits and its
// unit with a B for the b.
Status BitsForBytes(std::string_view text, std::string_view number, const std::string& bytes,
                    std::span<const Unit> units) {
  const double eighth = std::strtod(std::string(number).c_str(), nullptr) / 8;
  const std::string in_bytes = fmt::format("{:.6g}{}", eighth, bytes);
  if (!bytes.ends_with("/s"))
    return InvalidInput(
        fmt::format("'{}': b is bits; hint: {}{}, or {} if bits are meant", text, number, bytes, in_bytes));
  const std::string bits = bytes.substr(0, bytes.size() - 3) + "bit/s";
  const bool has_bits = std::ranges::any_of(units, [&](const Unit& unit) { return unit.name == bits; });
  return InvalidInput(has_bits ? fmt::format("'{}': b is bits; hint: {}{} ({})", text, number, bits, in_bytes)
                               : fmt::format("'{}': b is bits; hint: {}", text, in_bytes));
}

// Parses a decimal number with a unit: the digits are kept as an integer and a power of ten.
StatusOr<int64_t> ParseScaled(std::string_view text, std::span<const Unit> units, std::string_view what,
                              std::string_view example, Fraction rule = Fraction::kExact) {
  const auto bad = [&](std::string_view why) {
    return InvalidInput(fmt::format("'{}': {}; a {} is written like {}", text, why, what, example));
  };
  size_t i = 0;
  __int128 digits = 0;
  int64_t divisor = 1;
  bool any = false, fraction = false;
  for (; i < text.size() && ((text[i] >= '0' && text[i] <= '9') || (text[i] == '.' && !fraction)); ++i) {
    if (text[i] == '.') {
      fraction = true;
      continue;
    }
    any = true;
    if (digits > std::numeric_limits<int64_t>::max() / 10 || divisor > 100'000'000'000'000'000) {
      if (fraction && rule == Fraction::kRounded) continue;
      return bad("too many digits");
    }
    digits = digits * 10 + (text[i] - '0');
    if (fraction) divisor *= 10;
  }
  if (!any) return bad("no number");
  const std::string_view suffix = text.substr(i);
  for (const Unit& unit : units) {
    if (unit.name != suffix) continue;
    __int128 scaled = digits * unit.scale;
    if (rule == Fraction::kRounded) scaled = (scaled + divisor / 2) / divisor * divisor;
    if (scaled / divisor > std::numeric_limits<int64_t>::max()) return bad("too large");
    if (scaled % divisor != 0) return bad("not a whole number of the smallest unit");
    return static_cast<int64_t>(scaled / divisor);
  }
  std::vector<std::string_view> names;
  for (const Unit& unit : units) names.push_back(unit.name);
  if (suffix.empty()) return bad("no unit");
  if (const std::string bytes = BytesOfBits(suffix, units); !bytes.empty())
    return BitsForBytes(text, text.substr(0, i), bytes, units);
  // Another first letter is another unit: GiB is not meant by EiB.
  const std::string_view letters = Trim(suffix);
  std::erase_if(names, [&](std::string_view name) {
    return letters.empty() || name.empty() ||
           std::tolower(static_cast<unsigned char>(name[0])) !=
               std::tolower(static_cast<unsigned char>(letters[0]));
  });
  return bad(fmt::format("unknown unit '{}'{}", suffix, DidYouMean(suffix, names)));
}

// The exact decimal text of value / scale, or "" if it needs more than `places` decimal places.
std::string Decimal(int64_t value, int64_t scale, int places) {
  std::string text = std::to_string(value / scale);
  __int128 rest = value % scale;
  if (rest == 0) return text;
  text += '.';
  for (int i = 0; i < places && rest != 0; ++i) {
    rest *= 10;
    text += static_cast<char>('0' + static_cast<int>(rest / scale));
    rest %= scale;
  }
  return rest == 0 ? text : "";
}

std::string FormatScaled(int64_t value, std::span<const Unit> descending, int places) {
  std::string best;
  for (const Unit& unit : descending) {
    if (value != 0 && value < unit.scale) continue;
    const std::string number = Decimal(value, unit.scale, places);
    if (number.empty()) continue;
    const std::string text = number + std::string(unit.name);
    if (best.empty() || text.size() < best.size()) best = text;
  }
  return best;
}

std::string FourDigits(double value) {
  if (value >= 1000) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

}  // namespace

StatusOr<int64_t> ParseSize(std::string_view text) { return ParseScaled(text, kSizeUnits, "size", "64MiB"); }

StatusOr<int64_t> ParseDuration(std::string_view text) {
  return ParseScaled(text, kTimeUnits, "time", "500ns");
}

StatusOr<int64_t> ParseLatency(std::string_view text) {
  XCCL_ASSIGN_OR_RETURN(const int64_t value, ParseDuration(text));
  if (value > kMaxLatencyPs)
    return InvalidInput(fmt::format("'{}': a link takes at most {}", text, FormatDuration(kMaxLatencyPs)));
  return value;
}

StatusOr<int64_t> ParseBandwidth(std::string_view text) {
  XCCL_ASSIGN_OR_RETURN(const int64_t value,
                        ParseScaled(text, kBandwidthUnits, "bandwidth", "450GB/s", Fraction::kRounded));
  if (value <= 0) return InvalidInput(fmt::format("'{}': expected more than zero", text));
  if (value > kMaxBandwidthBytesPerS)
    return InvalidInput(
        fmt::format("'{}': a link has at most {}", text, FormatBandwidth(kMaxBandwidthBytesPerS)));
  return value;
}

StatusOr<int64_t> ParseBillionths(std::string_view text) {
  return ParseScaled(text, std::array<Unit, 1>{{{"", 1'000'000'000}}}, "factor", "0.5");
}

StatusOr<int64_t> ParseInteger(std::string_view text, int64_t low, int64_t high) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return InvalidInput(fmt::format("'{}': expected a whole number from {} to {}", text, low, high));
  return value;
}

StatusOr<std::vector<int64_t>> ParseSizeList(std::string_view text) {
  std::vector<int64_t> sizes;
  for (const std::string& item : Split(text, ',')) {
    const std::vector<std::string> range = Split(item, ':');
    if (range.size() == 1) {
      XCCL_ASSIGN_OR_RETURN(const int64_t size, ParseSize(item));
      sizes.push_back(size);
      continue;
    }
    if (range.size() > 3)
      return InvalidInput(fmt::format("'{}': a range is written like 1KiB:1GiB:x4", item));
    XCCL_ASSIGN_OR_RETURN(int64_t size, ParseSize(range[0]));
    XCCL_ASSIGN_OR_RETURN(const int64_t last, ParseSize(range[1]));
    int64_t factor = 2;
    if (range.size() == 3) {
      if (range[2].empty() || range[2][0] != 'x')
        return InvalidInput(fmt::format("'{}': a range is written like 1KiB:1GiB:x4", item));
      XCCL_ASSIGN_OR_RETURN(factor, ParseInteger(std::string_view(range[2]).substr(1), 2, 1 << 20));
    }
    if (size <= 0 || last < size)
      return InvalidInput(
          fmt::format("'{}': expected a range from a size above zero up to a larger one", item));
    for (; size <= last; size *= factor) {
      sizes.push_back(size);
      if (size > std::numeric_limits<int64_t>::max() / factor) break;
    }
  }
  return sizes;
}

std::string FormatSize(int64_t bytes) {
  for (const Unit& unit : std::array<Unit, 4>{{{"TiB", kTi}, {"GiB", kGi}, {"MiB", kMi}, {"KiB", kKi}}})
    if (bytes != 0 && bytes % unit.scale == 0)
      return std::to_string(bytes / unit.scale) + std::string(unit.name);
  return std::to_string(bytes);
}

std::string FormatDuration(int64_t ps) {
  if (ps == 0) return "0ns";
  return FormatScaled(
      ps, std::array<Unit, 4>{{{"ms", 1'000'000'000}, {"us", kPsPerUs}, {"ns", kPsPerNs}, {"ps", 1}}}, 6);
}

std::string FormatBandwidth(int64_t bytes_per_s) {
  return FormatScaled(
      bytes_per_s,
      std::array<Unit, 5>{
          {{"GB/s", 1'000'000'000}, {"GiB/s", kGi}, {"MB/s", 1'000'000}, {"KB/s", 1'000}, {"B/s", 1}}},
      9);
}

std::string FormatDurationShort(int64_t ps) {
  if (ps >= kPsPerSecond) return FourDigits(static_cast<double>(ps) / 1e12) + "s";
  if (ps >= 1'000'000'000) return FourDigits(static_cast<double>(ps) / 1e9) + "ms";
  return FourDigits(static_cast<double>(ps) / 1e6) + "us";
}

std::string FormatBandwidthShort(double bytes_per_s) {
  if (bytes_per_s >= 1e6) return FourDigits(bytes_per_s / 1e9) + "GB/s";
  return FourDigits(bytes_per_s) + "B/s";
}

}  // namespace xccl
