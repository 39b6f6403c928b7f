#include "pipeline/measure/repeat.h"

#include <numeric>
#include <utility>

#include "base/spread.h"

namespace xccl {
namespace {

// Returns whether the samples are enough by the rule in repeat.h.
bool IsEnough(const std::vector<double>& samples) {
  if (samples.size() < static_cast<size_t>(kLeastSamples)) return false;
  return SpreadOf(samples) <= kKnownSpread || samples.size() >= static_cast<size_t>(kMostSamples) ||
         std::accumulate(samples.begin(), samples.end(), 0.0) >= kMostUs;
}

}  // namespace

Measure RepeatUntilKnown(Sample sample) {
  return
      [sample = std::move(sample)](const LoweredProgram& lowered, int64_t size_bytes) -> StatusOr<Measured> {
        std::vector<double> samples;
        while (!IsEnough(samples)) {
          XCCL_ASSIGN_OR_RETURN(const std::vector<double> more, sample(lowered, size_bytes));
          samples.insert(samples.end(), more.begin(), more.end());
        }
        return Measured{MedianOf(samples), SpreadOf(samples), static_cast<int32_t>(samples.size())};
      };
}

}  // namespace xccl
