#include "ir/lower/forms.h"

#include "ir/lower/order.h"
#include "ir/program.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"

namespace xccl::lowering {
namespace {

// One pass loses little if the simulation of the schedule cuts a chunk into at most this many segments.
constexpr int64_t kFewSegments = 4;

}  // namespace

std::vector<Form> FormsFor(const Schedule& schedule, const Collective& collective, int64_t size_bytes,
                           int64_t num_moves) {
  if (num_moves > kLargeMoves) {
    const int64_t chunk_bytes = CollectiveSizes(collective, size_bytes).LargestChunkBytes();
    if (kFewSegments * DefaultSegmentBytes(schedule, collective, size_bytes) >= chunk_bytes)
      return {{{}, false, true, Segments::kWhole}};
    return {{kFixedSlots, true, true, Segments::kMiddle}};
  }
  if (num_moves > kManyMoves) return {{kFixedSlots, true, true}, {{}, true, true}, {{}, false, true}};
  return {{Program().slots, true, false}, {kFixedSlots, true, false}, {kFixedSlots, true, true},
          {kFixedSlots, false, true},     {{}, true, true},           {{}, false, true}};
}

}  // namespace xccl::lowering
