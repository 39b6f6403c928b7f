#include "interchange/common/rounded_weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace xccl {

std::optional<RoundedParts> RoundedWeights(const Collective& collective, int32_t most_units) {
  constexpr double kMostOff = 0.005;
  const auto size_of = [&](ChunkId c, int32_t units) {
    const auto all = static_cast<double>(collective.PartWeight(collective.PartOf(c)));
    return all == 0 ? 0.0 : static_cast<double>(collective.Weight(c)) * units / all;
  };
  for (int32_t units = 1; units <= most_units; ++units) {
    double off = 0;
    for (int32_t c = 0; c < collective.num_chunks() && off <= kMostOff; ++c) {
      const double size = size_of(ChunkId(c), units);
      if (size > 0) off = std::max(off, std::abs(std::round(size) / size - 1));
    }
    if (off > kMostOff) continue;
    std::vector<int32_t> chunks;
    std::vector<int64_t> weights;
    bool whole = true;  // all parts have so many units
    for (int32_t p = 0; p < collective.num_parts() && whole; ++p) {
      chunks.push_back(collective.ChunksOf(PartId(p)));
      int64_t sum = 0;
      for (int32_t c = 0; c < chunks.back(); ++c) {
        weights.push_back(static_cast<int64_t>(
            std::round(size_of(ChunkId(collective.FirstChunk(PartId(p)).value + c), units))));
        sum += weights.back();
      }
      whole = sum == units || sum == 0;
    }
    if (!whole) continue;
    return RoundedParts{
        collective.WithWeights(chunks, weights),
        fmt::format("chunks are rounded to whole parts of {}, by up to {:.2f} %", units, 100 * off)};
  }
  return std::nullopt;
}

}  // namespace xccl
