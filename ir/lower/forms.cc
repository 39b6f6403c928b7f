#include "ir/lower/forms.h"

#include <algorithm>
#include <span>

#include "ir/simulate/simulate.h"
#include "ir/sizes.h"

namespace xccl::lowering {
namespace {

constexpr Form kUsualForms[] = {{2, true, false}, {8, true, false}, {8, true, true},
                                {8, false, true}, {{}, true, true}, {{}, false, true}};
constexpr Form kFormsOfMany[] = {{8, true, true}, {{}, true, true}, {{}, false, true}};
constexpr Form kFaithfulForm[] = {{{}, false, true, Segments::kWhole}};
constexpr Form kMiddleForm[] = {{8, true, true, Segments::kMiddle}};

constexpr int64_t kManyMoves = 50'000;
constexpr int64_t kFewSegments = 4;  // of a chunk, that a schedule can do without

std::span<const Form> FormsOfLarge(const Schedule& schedule, const Collective& collective,
                                   int64_t size_bytes) {
  const int64_t chunk_bytes = CollectiveSizes(collective, size_bytes).LargestChunkBytes();
  if (kFewSegments * DefaultSegmentBytes(schedule, collective, size_bytes) >= chunk_bytes)
    return kFaithfulForm;
  return kMiddleForm;
}

constexpr int64_t kAllowedLoss = 50;  // one part in so many

}  // namespace

std::vector<Form> FormsFor(const Schedule& schedule, const Collective& collective, int64_t size_bytes,
                           int64_t num_moves, int64_t large_moves, const FixedForm& fixed) {
  const std::span<const Form> table = num_moves > large_moves ? FormsOfLarge(schedule, collective, size_bytes)
                                      : num_moves > kManyMoves ? std::span<const Form>(kFormsOfMany)
                                                               : kUsualForms;
  std::vector<Form> forms;
  for (Form form : table) {
    if (fixed.slots) form.slots = fixed.slots;
    form.fuse = fixed.fuse.value_or(form.fuse);
    form.pace = fixed.pace.value_or(form.pace);
    if (std::ranges::find(forms, form) == forms.end()) forms.push_back(form);
  }
  return forms;
}

bool Keeps(int64_t time_ps, int64_t wanted_ps) { return time_ps <= wanted_ps + wanted_ps / kAllowedLoss; }

bool IsFaster(int64_t time_ps, int64_t plainer_ps) {
  return time_ps < plainer_ps - plainer_ps / kAllowedLoss;
}

}  // namespace xccl::lowering
