#include "topologies/fabric/ib_rates.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/units.h"

namespace xccl {
namespace {

struct Speed {
  IbSpeed speed;
  std::string_view name;
  double signal_gbps;     // of a lane
  double data_bit_per_s;  // of a lane
};

constexpr Speed kSpeeds[] = {
    {IbSpeed::kSdr, "SDR", 2.5, 2e9},
    {IbSpeed::kDdr, "DDR", 5, 4e9},
    {IbSpeed::kQdr, "QDR", 10, 8e9},
    {IbSpeed::kFdr10, "FDR10", 10.3125, 10e9},
    {IbSpeed::kFdr, "FDR", 14.0625, 14.0625e9 * 64 / 66},
    {IbSpeed::kEdr, "EDR", 25.78125, 25e9},
    {IbSpeed::kHdr, "HDR", 53.125, 50e9},
    {IbSpeed::kNdr, "NDR", 106.25, 100e9},
    {IbSpeed::kXdr, "XDR", 212.5, 200e9},
};

const Speed* Find(IbSpeed speed) {
  const auto* const found = std::ranges::find(kSpeeds, speed, &Speed::speed);
  return found == std::end(kSpeeds) ? nullptr : found;
}

}  // namespace

int64_t IbBytesPerS(IbRate rate) {
  const Speed* const speed = Find(rate.speed);
  return speed == nullptr ? 0 : std::llround(rate.lanes * speed->data_bit_per_s / 8);
}

IbSpeed IbSpeedOfName(std::string_view name) {
  const auto* const found = std::ranges::find(kSpeeds, name, &Speed::name);
  return found == std::end(kSpeeds) ? IbSpeed::kUnknown : found->speed;
}

IbSpeed IbSpeedOfLaneGbps(std::string_view gbps) {
  const StatusOr<int64_t> billionths = ParseBillionths(gbps);
  if (!billionths.ok()) return IbSpeed::kUnknown;
  const double value = static_cast<double>(*billionths) / 1e9;
  constexpr double kRounding = 0.005;  // "25.78" is printed, too
  for (const Speed& speed : kSpeeds)
    if (std::abs(value - speed.signal_gbps) <= kRounding) return speed.speed;
  return IbSpeed::kUnknown;
}

int32_t IbLanes(std::string_view width) {
  for (const int32_t lanes : {1, 2, 4, 8, 12})
    if (width == fmt::format("{}x", lanes) || width == fmt::format("{}X", lanes)) return lanes;
  return 0;
}

std::string ToString(IbRate rate) {
  const Speed* const speed = Find(rate.speed);
  return fmt::format("{}x{}", rate.lanes == 0 ? "?" : fmt::format("{}", rate.lanes),
                     speed == nullptr ? "???" : speed->name);
}

}  // namespace xccl
