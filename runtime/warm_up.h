// Decides how many operations a run makes before it is timed. The first operations are slower than the rest:
// they touch memory for the first time, and threads and clocks wake up.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace xccl {

// A run asks Next() for the length of each round of operations, makes them, and gives their time to Add().
// All ranks of a run must give the same times, so that they make the same rounds.
class WarmUp {
 public:
  // `given`: the number of operations; absent: until times settle.
  explicit WarmUp(std::optional<int32_t> given) : given_(given), next_(given.value_or(1)) {}

  // Are the times of rounds needed? If not, Add() ignores them.
  bool NeedsTimes() const { return !given_; }
  // Returns the number of operations of the next round; 0: the run is warm.
  int32_t Next() const { return next_; }
  // `seconds`: the time of one operation in the round. The run is warm once an operation takes at least
  // kSettled of the time that it took in the fastest round before, or after kLongestRound or kMostSeconds.
  void Add(double seconds) {
    total_s_ += seconds * next_;
    const bool is_warm =
        given_ || seconds >= kSettled * fastest_s_ || next_ >= kLongestRound || total_s_ >= kMostSeconds;
    fastest_s_ = seconds < fastest_s_ ? seconds : fastest_s_;
    next_ = is_warm ? 0 : 2 * next_;
  }

 private:
  static constexpr double kSettled = 0.9;       // times of equal operations differ by that on a quiet machine
  static constexpr int32_t kLongestRound = 64;  // operations
  static constexpr double kMostSeconds = 1;

  std::optional<int32_t> given_;
  int32_t next_;
  double fastest_s_ = std::numeric_limits<double>::infinity();
  double total_s_ = 0;
};

}  // namespace xccl
