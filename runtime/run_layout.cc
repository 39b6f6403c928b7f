#include "runtime/run_layout.h"

#include <algorithm>
#include <cstring>

namespace xccl {
namespace {

int64_t RoundUp(int64_t bytes) { return (bytes + kRunGuardBytes - 1) / kRunGuardBytes * kRunGuardBytes; }

int64_t BytesOf(const CollectiveSizes& sizes, const std::vector<PartId>& parts, size_t until) {
  int64_t bytes = 0;
  for (size_t p = 0; p < until && p < parts.size(); ++p) bytes += sizes.PartBytes(parts[p]);
  return bytes;
}

}  // namespace

RunLayout RunLayoutOf(const Collective& collective, const CollectiveSizes& sizes, Rank rank, bool in_place) {
  RunLayout layout;
  const std::vector<PartId> input = collective.InputParts(rank), output = collective.OutputParts(rank);
  layout.input_bytes = BytesOf(sizes, input, input.size());
  layout.output_bytes = BytesOf(sizes, output, output.size());
  layout.input_at = kRunGuardBytes;
  layout.output_at = 2 * kRunGuardBytes + RoundUp(layout.input_bytes);
  if (const auto overlap = collective.InPlaceOf(rank); in_place && overlap) {
    layout.overlaps = true;
    layout.input_at =
        kRunGuardBytes + BytesOf(sizes, output, static_cast<size_t>(overlap->input_at_output_part));
    layout.output_at =
        kRunGuardBytes + BytesOf(sizes, input, static_cast<size_t>(overlap->output_at_input_part));
  }
  layout.bytes =
      RoundUp(std::max(layout.input_at + layout.input_bytes, layout.output_at + layout.output_bytes)) +
      kRunGuardBytes;
  return layout;
}

void PoisonRun(const RunLayout& layout, std::span<std::byte> memory) {
  std::memset(memory.data(), std::to_integer<int>(kRunGuard), memory.size());
  std::memset(memory.data() + layout.output_at, std::to_integer<int>(kRunPoison),
              static_cast<size_t>(layout.output_bytes));
}

int64_t OverwrittenGuards(const RunLayout& layout, std::span<const std::byte> memory) {
  int64_t wrong = 0, at = 0;
  const auto count_until = [&](int64_t end) {
    for (; at < end; ++at) wrong += memory[static_cast<size_t>(at)] != kRunGuard ? 1 : 0;
  };
  count_until(std::min(layout.input_at, layout.output_at));
  const int64_t input_end = layout.input_at + layout.input_bytes;
  if (input_end <= layout.output_at) {
    at = input_end;
    count_until(layout.output_at);
  }
  at = std::max(input_end, layout.output_at + layout.output_bytes);
  count_until(layout.bytes);
  return wrong;
}

std::vector<Rank> ActiveRanks(const Program& program, const Collective& collective) {
  std::vector<Rank> active;
  for (int32_t r = 0; r < program.ranks.size(); ++r)
    if (collective.MemberIndex(Rank(r)) || !program.ranks[Rank(r)].threadblocks.empty())
      active.push_back(Rank(r));
  return active;
}

bool HasInPlace(const Program& program, const Collective& collective) {
  return program.in_place && std::ranges::any_of(collective.ranks(), [&](Rank rank) {
           return collective.InPlaceOf(rank).has_value();
         });
}

int64_t RunCountOf(const Collective& collective, const CollectiveSizes& sizes) {
  int64_t largest = 0;
  for (int32_t p = 0; p < collective.num_parts(); ++p)
    largest = std::max(largest, sizes.PartElements(PartId(p)));
  return largest;
}

}  // namespace xccl
