// When a time limit is over, by the wall clock.
#pragma once

#include <chrono>
#include <limits>
#include <optional>

namespace xccl {

// Counts from when it is made; without a limit it never passes.
class Deadline {
 public:
  explicit Deadline(std::optional<double> limit_s = {}) : limit_s_(limit_s) {}
  // Has it passed?
  bool operator()() const { return SecondsLeft() <= 0; }
  bool has_limit() const { return limit_s_.has_value(); }
  // Infinite without a limit.
  double SecondsLeft() const {
    if (!limit_s_) return std::numeric_limits<double>::infinity();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began_;
    return *limit_s_ - passed.count();
  }

 private:
  std::optional<double> limit_s_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace xccl
