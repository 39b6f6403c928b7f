// How close two times must be so that the simpler of two plans or programs is taken. All tolerances are
// ratios of times.
#pragma once

#include <cstdint>

namespace xccl {

// A simpler plan or program may take 2 % longer, and a less simple one must save 2 % (docs/ir.md, section 7).
inline constexpr double kToleratedRatio = 1.02, kGainRatio = 0.98;

// Returns whether `time_ps` is at most `ratio` times `other_ps`.
inline bool IsWithin(int64_t time_ps, double ratio, int64_t other_ps) {
  return static_cast<double>(time_ps) <= ratio * static_cast<double>(other_ps);
}

// Returns whether a program is as fast as wanted, within the tolerance.
inline bool IsWithinTolerance(int64_t time_ps, int64_t wanted_ps) {
  return IsWithin(time_ps, kToleratedRatio, wanted_ps);
}

// Returns whether a program saves enough time beside a plainer program to replace it.
inline bool IsFaster(int64_t time_ps, int64_t plainer_ps) {
  return static_cast<double>(time_ps) < kGainRatio * static_cast<double>(plainer_ps);
}

}  // namespace xccl
