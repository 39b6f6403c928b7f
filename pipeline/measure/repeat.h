// Repeats a measurement until its spread is small or a limit is reached, so that a busy machine's times are
// not taken for the program's.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "ir/program.h"

namespace xccl {

// The time of one operation of a program at a size.
struct Measured {
  double us = 0;        // median of the samples
  double spread = 0;    // standard error of the median, as a share of the median (base/spread.h)
  int32_t samples = 1;  // >= 1; the spread of one sample is 0, which then says nothing
};

// Runs a program at a size (as nccl-tests counts it) and checks the results.
using Measure = std::function<StatusOr<Measured>(const LoweredProgram& lowered, int64_t size_bytes)>;

// Runs a program as Measure does, but once. Returns the samples of this run, at least one. A sample is the
// time of one operation in microseconds.
using Sample =
    std::function<StatusOr<std::vector<double>>(const LoweredProgram& lowered, int64_t size_bytes)>;

// The rule: a measurement has at least kLeastSamples samples. It is repeated until its spread is at most
// kKnownSpread, or until it has kMostSamples samples, or until the samples have taken kMostUs.
inline constexpr int32_t kLeastSamples = 5;   // fewer do not tell an outlier from the rest
inline constexpr double kKnownSpread = 0.05;  // tells apart plans whose times differ by a tenth
inline constexpr int32_t kMostSamples = 25;   // five times as many samples halve the spread, roughly
inline constexpr double kMostUs = 2e6;        // operations of seconds are repeated kLeastSamples times only

// Returns a function that repeats `sample` by the rule. The rule looks at the samples alone, not at a clock,
// so that processes which see equal samples repeat equally often. Errors: those of `sample`.
Measure RepeatUntilKnown(Sample sample);

}  // namespace xccl
