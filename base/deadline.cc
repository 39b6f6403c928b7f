#include "base/deadline.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace xccl {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kLongestSeconds = 1e9;  // about 30 years: nanoseconds fit into 64 bits

int64_t NowNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Deadline::Deadline(std::optional<double> limit_s) : limit_s_(limit_s) {
  if (limit_s) end_ns_ = NowNs() + static_cast<int64_t>(std::min(*limit_s, kLongestSeconds) * kNsPerSecond);
}

double Deadline::SecondsLeft() const {
  if (!limit_s_) return std::numeric_limits<double>::infinity();
  return static_cast<double>(end_ns_ - NowNs()) / kNsPerSecond;
}

Deadline Deadline::Leaving(double share, double most_s) const {
  Deadline earlier = *this;
  if (!limit_s_) return earlier;
  const double left_s = std::max(0.0, SecondsLeft());
  earlier.end_ns_ -= static_cast<int64_t>(std::min(share * left_s, most_s) * kNsPerSecond);
  return earlier;
}

std::string Deadline::ToString() const { return fmt::format("--time-limit={:g}s", limit_s_.value_or(0)); }

}  // namespace xccl
