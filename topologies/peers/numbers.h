// Rates and times as other tools' topology files write them, and the flag --link, which gives those that a
// file leaves out.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "topologies/load_options.h"

namespace xccl {

// "2880Gbps", "400Gb/s", "400G" (bits), "50GBps", and all that ParseBandwidth takes. Errors: as
// ParseBandwidth.
StatusOr<int64_t> ParsePeerRate(std::string_view text);
// "0.000025ms", "1us", "5s"; rounded to whole picoseconds. Errors: as ParseLatency.
StatusOr<int64_t> ParsePeerTime(std::string_view text);
// A rate or time as a number of `unit` (GB/s, us). Errors: it is not a number within a link's limits.
StatusOr<int64_t> RateOf(double value, double unit_bytes_per_s);
StatusOr<int64_t> TimeOf(double value, double unit_ps);

// --link bandwidth=25GB/s,latency=500ns.
struct LinkFlag {
  std::optional<int64_t> bandwidth_bytes_per_s;
  std::optional<int64_t> latency_ps;
};
// Errors: kUsage.
StatusOr<LinkFlag> ReadLinkFlag(const LoadOptions& options);

}  // namespace xccl
