#include "pipeline/measure/repeat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ir/collective.h"

namespace xccl {
namespace {

// Measures with runs that give these samples, run by run; the last run is repeated. Returns what was
// measured, and the number of runs in `calls`.
Measured Of(const std::vector<std::vector<double>>& runs, size_t& calls) {
  CollectiveSpec spec;
  spec.ranks = {Rank(0), Rank(1)};
  const LoweredProgram nothing{Collective::Create(spec).value(), {}};
  calls = 0;
  const Measure measure =
      RepeatUntilKnown([&](const LoweredProgram&, int64_t) -> StatusOr<std::vector<double>> {
        return runs[std::min(calls++, runs.size() - 1)];
      });
  return measure(nothing, 16).value();
}

TEST(RepeatUntilKnown, EndsWhenTheSpreadIsKnown) {
  const std::vector<double> noise = {100, 200, 300, 400, 500};
  const struct {
    const char* name;
    std::vector<std::vector<double>> runs;
    size_t calls;
    int32_t samples;
    double us;
  } cases[] = {
      {"five quiet samples of one run suffice", {{10, 10.1, 9.9, 10, 10}}, 1, 5, 10},
      {"runs of one sample are repeated", {{10}}, 5, 5, 10},
      {"one outlier needs no repetition", {{10, 10, 95, 10, 10}}, 1, 5, 10},
      {"a noisy run is repeated until the median stands", {noise, {300, 300, 300, 300, 300}}, 2, 10, 300},
      {"noise alone ends at the limit of samples", {noise}, 5, 25, 300},
      {"long operations are not repeated", {{1e6, 2e6, 3e6, 4e6, 5e6}}, 1, 5, 3e6},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    size_t calls = 0;
    const Measured measured = Of(c.runs, calls);
    EXPECT_EQ(calls, c.calls);
    EXPECT_EQ(measured.samples, c.samples);
    EXPECT_DOUBLE_EQ(measured.us, c.us);
  }
  size_t calls = 0;
  EXPECT_GT(Of({noise}, calls).spread, kKnownSpread);
}

TEST(RepeatUntilKnown, FailsAsARunFails) {
  CollectiveSpec spec;
  spec.ranks = {Rank(0), Rank(1)};
  const LoweredProgram nothing{Collective::Create(spec).value(), {}};
  const Measure measure =
      RepeatUntilKnown([](const LoweredProgram&, int64_t) -> StatusOr<std::vector<double>> {
        return LimitReached("rank 1 died");
      });
  EXPECT_EQ(measure(nothing, 16).status().message(), "rank 1 died");
}

}  // namespace
}  // namespace xccl
