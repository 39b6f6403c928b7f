// When a time limit is over, by the wall clock.
#pragma once

#include <cstdint>
#include <optional>

namespace xccl {

// Counts from when it is made; without a limit it never passes.
class Deadline {
 public:
  explicit Deadline(std::optional<double> limit_s = {});
  // Has it passed?
  bool operator()() const { return SecondsLeft() <= 0; }
  bool has_limit() const { return limit_s_.has_value(); }
  // Infinite without a limit.
  double SecondsLeft() const;

 private:
  std::optional<double> limit_s_;
  int64_t began_ns_;  // by the steady clock
};

}  // namespace xccl
