// A moment by the wall clock at which work is to end. It is made once, where a command begins, and handed to
// every stage, so that all of them together keep one limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace xccl {

// A value; safe to ask from any thread. Without a limit it never passes.
class Deadline {
 public:
  // So many seconds from this call on.
  explicit Deadline(std::optional<double> limit_s = {});
  // Has it passed?
  bool operator()() const { return SecondsLeft() <= 0; }
  bool has_limit() const { return limit_s_.has_value(); }
  // Infinite without a limit.
  double SecondsLeft() const;
  // The same limit, to be kept earlier: `share` of what is left, but at most `most_s` seconds, stay for the
  // stages that follow.
  Deadline Leaving(double share, double most_s) const;
  // "--time-limit=2.5s", as it was given, for messages. Requires: has_limit().
  std::string ToString() const;

 private:
  std::optional<double> limit_s_;
  int64_t end_ns_ = 0;  // by the steady clock
};

// A deadline for the head of a long loop: looks at the clock once in 1,024 calls. Once passed, it stays so.
class SeldomAsked {
 public:
  explicit SeldomAsked(const Deadline& deadline) : deadline_(deadline) {}
  bool operator()() {
    if (deadline_.has_limit() && !passed_ && (calls_++ & 1023) == 0) passed_ = deadline_();
    return passed_;
  }

 private:
  Deadline deadline_;
  uint32_t calls_ = 0;
  bool passed_ = false;
};

}  // namespace xccl
