#include "topologies/peers/numbers.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/attributes.h"

namespace xccl {
namespace {

struct Unit {
  std::string_view name;
  double value;
};
constexpr Unit kRateUnits[] = {
    {"bps", 0.125},  {"b/s", 0.125},  {"kbps", 125},   {"Kbps", 125},   {"kb/s", 125},   {"Kb/s", 125},
    {"Mbps", 125e3}, {"Mb/s", 125e3}, {"M", 125e3},    {"Gbps", 125e6}, {"Gb/s", 125e6}, {"Gb", 125e6},
    {"G", 125e6},    {"Tbps", 125e9}, {"Tb/s", 125e9}, {"T", 125e9},    {"Bps", 1},      {"kBps", 1e3},
    {"KBps", 1e3},   {"MBps", 1e6},   {"GBps", 1e9},   {"TBps", 1e12},  {"GB", 1e9},
};
constexpr Unit kTimeUnits[] = {{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"ns", 1e3}, {"ps", 1}};

// The number at the start of the text and what stands behind it; absent: no number.
std::optional<std::pair<double, std::string_view>> NumberAndUnit(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return std::pair(number, Trim(text.substr(static_cast<size_t>(end - text.data()))));
}

}  // namespace

StatusOr<int64_t> RateOf(double value, double unit_bytes_per_s) {
  const double rate = std::round(value * unit_bytes_per_s);
  if (!(rate >= 1) || rate > static_cast<double>(kMaxBandwidthBytesPerS))
    return InvalidInput(fmt::format("a bandwidth of {} B/s; expected 1 B/s to {}", value * unit_bytes_per_s,
                                    FormatBandwidth(kMaxBandwidthBytesPerS)));
  return static_cast<int64_t>(rate);
}

StatusOr<int64_t> TimeOf(double value, double unit_ps) {
  const double time = std::round(value * unit_ps);
  if (!(time >= 0) || time > static_cast<double>(kMaxLatencyPs))
    return InvalidInput(fmt::format("a latency of {} us; expected 0 to {}", value * unit_ps / 1e6,
                                    FormatDuration(kMaxLatencyPs)));
  return static_cast<int64_t>(time);
}

StatusOr<int64_t> ParsePeerRate(std::string_view text) {
  text = Trim(text);
  const auto parts = NumberAndUnit(text);
  if (!parts) return ParseBandwidth(text);
  for (const Unit& unit : kRateUnits)
    if (unit.name == parts->second) return RateOf(parts->first, unit.value);
  const std::string_view number = Trim(text.substr(0, text.size() - parts->second.size()));
  return ParseBandwidth(fmt::format("{}{}", number, parts->second));  // "50 GB/s"
}

StatusOr<int64_t> ParsePeerTime(std::string_view text) {
  text = Trim(text);
  if (const auto parts = NumberAndUnit(text))
    for (const Unit& unit : kTimeUnits)
      if (unit.name == parts->second) return TimeOf(parts->first, unit.value);
  return ParseLatency(text);
}

StatusOr<LinkFlag> ReadLinkFlag(const LoadOptions& options) {
  LinkFlag flag;
  if (!options.link) return flag;
  const auto usage = [](const Status& status) {
    return UsageError(fmt::format("--link: {}", status.message()));
  };
  std::vector<Attribute> attributes;
  if (Status read = ReadPairs(*options.link, attributes); !read.ok()) return usage(read);
  AttributeReader reader("link", std::move(attributes));
  if (reader.Has("bandwidth")) flag.bandwidth_bytes_per_s = reader.Bandwidth("bandwidth", 1);
  if (reader.Has("latency")) flag.latency_ps = reader.Latency("latency", 0);
  if (const Status read = reader.Finish(); !read.ok()) return usage(read);
  return flag;
}

}  // namespace xccl
