// Chunks do not interact. If two chunks of a part take the same paths, one may move in the other's steps.
#include "ir/lower/fold.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "base/graph/grouped.h"

namespace xccl::lowering {
namespace {

// Lists the transfers of every chunk by step. Within a step, transfers are sorted by their paths, so that the
// transfers of two chunks can be compared one by one.
class Journeys {
 public:
  Journeys(const Schedule& schedule, int32_t num_chunks)
      : schedule_(schedule),
        transfers_(GroupItems<int32_t, int64_t>(static_cast<size_t>(num_chunks), [&](auto add) {
          for (int64_t t = 0; t < schedule.size(); ++t)
            for (int32_t i = 0; i < schedule.count[t]; ++i)
              add(schedule.first[t].value + i, static_cast<int32_t>(t));
        })) {
    for (int32_t c = 0; c < num_chunks; ++c)
      std::sort(transfers_.items.begin() + transfers_.first[c],
                transfers_.items.begin() + transfers_.first[c + 1], [&](int32_t a, int32_t b) {
                  return std::tuple(schedule_.step[a], RouteOf(a)) <
                         std::tuple(schedule_.step[b], RouteOf(b));
                });
  }

  std::span<const int32_t> Of(int32_t chunk) const { return transfers_[chunk]; }
  bool AreAlike(int32_t a, int32_t b) const {
    return std::ranges::equal(
        Of(a), Of(b), {}, [&](int32_t t) { return RouteOf(t); }, [&](int32_t t) { return RouteOf(t); });
  }

 private:
  std::tuple<Rank, Rank, PathId, TransferOp> RouteOf(int32_t t) const {
    return {schedule_.src[t], schedule_.dst[t], schedule_.path[t], schedule_.op[t]};
  }

  const Schedule& schedule_;
  Grouped<int32_t, int64_t> transfers_;  // by chunk
};

}  // namespace

std::optional<Folded> FoldWaves(const Schedule& schedule, const Collective& collective) {
  const Journeys journeys(schedule, collective.num_chunks());
  std::vector<std::vector<int64_t>> weights;
  std::vector<int32_t> firsts;  // by joint chunk: the first of the chunks that it joins
  for (int32_t p = 0; p < collective.num_parts(); ++p) {
    weights.emplace_back();
    const int32_t first = collective.FirstChunk(PartId(p)).value;
    for (int32_t c = first; c < first + collective.ChunksOf(PartId(p)); ++c) {
      if (c == first || !journeys.AreAlike(firsts.back(), c)) {
        firsts.push_back(c);
        weights.back().push_back(0);
      }
      weights.back().back() += collective.Weight(ChunkId(c));
    }
  }
  if (static_cast<int32_t>(firsts.size()) == collective.num_chunks()) return std::nullopt;
  Folded folded{.schedule = {}, .collective = collective.WithWeights(weights)};
  folded.schedule.num_chunks = static_cast<int32_t>(firsts.size());
  for (size_t c = 0; c < firsts.size(); ++c)
    for (const int32_t t : journeys.Of(firsts[c]))
      folded.schedule.Add(ChunkId(static_cast<int64_t>(c)), 1, schedule.src[t], schedule.dst[t],
                          schedule.paths[schedule.path[t]], schedule.op[t], schedule.step[t]);
  Normalize(folded.schedule);
  return folded;
}

}  // namespace xccl::lowering
