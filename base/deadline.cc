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

void Interrupt::Set() { at_ns_ = NowNs(); }

Deadline::Deadline(std::optional<double> limit_s) : limit_s_(limit_s) {
  if (limit_s) end_ns_ = NowNs() + static_cast<int64_t>(std::min(*limit_s, kLongestSeconds) * kNsPerSecond);
}

double Deadline::SecondsLeft() const {
  double left_s = std::numeric_limits<double>::infinity();
  if (limit_s_) left_s = static_cast<double>(end_ns_ - NowNs()) / kNsPerSecond;
  if (const int64_t at_ns = interrupt_ == nullptr ? 0 : interrupt_->at_ns(); at_ns != 0)
    left_s = std::min(left_s, after_interrupt_s_ - static_cast<double>(NowNs() - at_ns) / kNsPerSecond);
  return left_s;
}

Deadline Deadline::Leaving(double share, double most_s) const {
  Deadline earlier = *this;
  earlier.after_interrupt_s_ = 0;
  if (!limit_s_) return earlier;
  const double left_s = std::max(0.0, SecondsLeft());
  earlier.end_ns_ -= static_cast<int64_t>(std::min(share * left_s, most_s) * kNsPerSecond);
  return earlier;
}

Deadline Deadline::ForTheRest() const {
  Deadline rest = *this;
  rest.after_interrupt_s_ = kSecondsAfterInterrupt;
  return rest;
}

Deadline Deadline::With(const Interrupt& interrupt) const {
  Deadline with = *this;
  with.interrupt_ = &interrupt;
  return with;
}

std::string Deadline::ToString() const {
  return IsInterrupted() ? "Ctrl-C" : fmt::format("--time-limit={:g}s", limit_s_.value_or(0));
}

std::string Deadline::Passed() const { return IsInterrupted() ? "interrupted" : ToString() + " passed"; }

}  // namespace xccl
