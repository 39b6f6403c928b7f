// The moment at which work is to end, in wall time. It is made once, where a command begins, and handed to
// every stage, so that all of them together keep one limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace xccl {

// Somebody wants the work to end with what it has: Ctrl-C. Safe from any thread and from signal handlers.
class Interrupt {
 public:
  void Set();
  bool IsSet() const { return at_ns() != 0; }
  int64_t at_ns() const { return at_ns_.load(); }  // by the steady clock; 0: it was not set

 private:
  std::atomic<int64_t> at_ns_ = 0;
};

// A value; safe to ask from any thread. Without a limit it passes only by an interrupt: searches (see
// Leaving) end at once, and kSecondsAfterInterrupt are left for proving and writing what they have found.
class Deadline {
 public:
  static constexpr double kSecondsAfterInterrupt = 60;

  // So many seconds from this call on.
  explicit Deadline(std::optional<double> limit_s = {});
  // Has it passed?
  bool operator()() const { return SecondsLeft() <= 0; }
  // Has it passed, or was it interrupted? No further part of the work is to begin.
  bool IsOver() const { return IsInterrupted() || (*this)(); }
  bool has_limit() const { return limit_s_.has_value(); }
  bool can_pass() const { return has_limit() || interrupt_ != nullptr; }
  bool IsInterrupted() const { return interrupt_ != nullptr && interrupt_->IsSet(); }
  // Infinite where it cannot pass.
  double SecondsLeft() const;
  // A copy that passes earlier: it leaves `share` of the time that is left, but at most `most_s` seconds, to
  // the stages that follow. The copy passes at once when the interrupt is set.
  Deadline Leaving(double share, double most_s) const;
  // A copy for the quick work that turns what a search has found into a result: after an interrupt it passes
  // only when kSecondsAfterInterrupt are over, or the limit is.
  Deadline ForTheRest() const;
  // A copy that the interrupt ends, too. Requires: `interrupt` outlives all copies.
  Deadline With(const Interrupt& interrupt) const;
  // For messages: "--time-limit=2.5s", as it was given; "Ctrl-C" after an interrupt.
  std::string ToString() const;
  // Likewise: "--time-limit=2.5s passed", "interrupted".
  std::string Passed() const;

 private:
  std::optional<double> limit_s_;
  int64_t end_ns_ = 0;  // by the steady clock
  const Interrupt* interrupt_ = nullptr;
  double after_interrupt_s_ = kSecondsAfterInterrupt;
};

// A deadline for the head of a long loop: looks at the clock once in 1,024 calls. Once passed, it stays so.
class SeldomAsked {
 public:
  explicit SeldomAsked(const Deadline& deadline) : deadline_(deadline) {}
  bool operator()() {
    if (deadline_.can_pass() && !passed_ && (calls_++ & 1023) == 0) passed_ = deadline_();
    return passed_;
  }

 private:
  Deadline deadline_;
  uint32_t calls_ = 0;
  bool passed_ = false;
};

}  // namespace xccl
