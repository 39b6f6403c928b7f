// Sizes, times and bandwidths: their text forms and the only conversions between them. They are stored as
// int64 in bytes (_bytes), picoseconds (_ps) and bytes per second (_bytes_per_s).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace xccl {

inline constexpr int64_t kPsPerNs = 1'000;
inline constexpr int64_t kPsPerUs = 1'000'000;
inline constexpr int64_t kPsPerSecond = 1'000'000'000'000;
inline constexpr double kPsPerDay = 86'400e12;
// The limits of one link, in every reader.
inline constexpr int64_t kMaxBandwidthBytesPerS = 1'000'000'000'000'000;  // 1000000GB/s
inline constexpr int64_t kMaxLatencyPs = kPsPerSecond;  // for a latency, and for an overhead

// "4096", "1KiB", "1K", "1KB". K, M, G, T and KiB.. are powers of 2; KB, MB, GB, TB are powers of 10. Case
// matters. Fractions are accepted if the result is a whole number ("1.5MiB"). Never negative.
StatusOr<int64_t> ParseSize(std::string_view text);
// One size, a list "1KiB,1MiB" or a range "1KiB:1GiB:x4" (both ends included when reached). The order is as
// written.
StatusOr<std::vector<int64_t>> ParseSizeList(std::string_view text);
// "500ns", "0.7us", "1ms", "2s", "30ps": a number and one of these units. Case matters; never negative.
StatusOr<int64_t> ParseDuration(std::string_view text);
// The duration of a link, which is at most kMaxLatencyPs: paths of any length add up without overflow.
StatusOr<int64_t> ParseLatency(std::string_view text);
// "50GB/s" (10^9), "50GiB/s" (2^30), "400Gbit/s", also B/s, KB/s, MB/s, TB/s, KiB/s, MiB/s, Mbit/s, Tbit/s.
// Rounded to whole bytes per second; more than zero, at most kMaxBandwidthBytesPerS.
StatusOr<int64_t> ParseBandwidth(std::string_view text);
// "0.25" as 250000000: a number of at most nine decimal places. Never negative.
StatusOr<int64_t> ParseBillionths(std::string_view text);
// A whole number within [low, high]; the error names both.
StatusOr<int64_t> ParseInteger(std::string_view text, int64_t low, int64_t high);

// These texts parse back to the same value. Sizes use the largest binary unit that divides them: "64MiB",
// "1000".
std::string FormatSize(int64_t bytes);
std::string FormatDuration(int64_t ps);            // "500ns", "1.25us"
std::string FormatBandwidth(int64_t bytes_per_s);  // "450GB/s", "50GiB/s"
// Rounded to four significant digits, for people: "12.9us", "346.7GB/s"; "3000B/s" below 0.001GB/s.
std::string FormatDurationShort(int64_t ps);
std::string FormatBandwidthShort(double bytes_per_s);

inline double PsToUs(int64_t ps) { return static_cast<double>(ps) / 1e6; }
inline double GbPerS(double bytes_per_s) { return bytes_per_s / 1e9; }

// Simulated times are capped here, so that a few of them can be added.
inline constexpr int64_t kForeverPs = std::numeric_limits<int64_t>::max() / 4;
// Time to move one of `parts` equal parts of `bytes` at `bytes_per_s`, rounded up to a whole picosecond; at
// most kForeverPs. Requires: bytes >= 0, the others > 0.
inline int64_t TransferPs(int64_t bytes, int64_t bytes_per_s, int64_t parts = 1) {
  const unsigned __int128 numerator = static_cast<unsigned __int128>(bytes) * kPsPerSecond;
  const unsigned __int128 denominator = static_cast<unsigned __int128>(bytes_per_s) * parts;
  const unsigned __int128 ps = (numerator + denominator - 1) / denominator;
  return ps < kForeverPs ? static_cast<int64_t>(ps) : kForeverPs;
}

}  // namespace xccl
