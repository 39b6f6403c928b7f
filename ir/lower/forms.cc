#include "ir/lower/forms.h"

#include "ir/simulate/simulate.h"
#include "ir/sizes.h"

namespace xccl::lowering {
namespace {

// Moves above which three forms are tried, since simulating a form takes long.
constexpr int64_t kManyMoves = 50'000;
// Segments of a chunk in the simulated schedule that are so few that a program of one pass loses little.
constexpr int64_t kFewSegments = 4;

}  // namespace

std::vector<Form> FormsFor(const Schedule& schedule, const Collective& collective, int64_t size_bytes,
                           int64_t num_moves, int64_t large_moves) {
  if (num_moves > large_moves) {
    const int64_t chunk_bytes = CollectiveSizes(collective, size_bytes).LargestChunkBytes();
    if (kFewSegments * DefaultSegmentBytes(schedule, collective, size_bytes) >= chunk_bytes)
      return {{{}, false, true, Segments::kWhole}};
    return {{8, true, true, Segments::kMiddle}};
  }
  if (num_moves > kManyMoves) return {{8, true, true}, {{}, true, true}, {{}, false, true}};
  return {{2, true, false}, {8, true, false}, {8, true, true},
          {8, false, true}, {{}, true, true}, {{}, false, true}};
}

}  // namespace xccl::lowering
