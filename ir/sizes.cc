#include "ir/sizes.h"

#include <algorithm>
#include <numeric>

namespace xccl {
namespace {

int64_t Scaled(int64_t value, int64_t numerator, int64_t denominator) {
  if (denominator == 0) return 0;
  return static_cast<int64_t>(static_cast<__int128>(value) * numerator / denominator);
}

// As in nccl-tests, an even share is rounded down to 16 bytes.
int64_t EvenShare(int64_t elements, int64_t members, int64_t element_bytes) {
  const int64_t step = std::max<int64_t>(1, 16 / element_bytes);
  return elements / members / step * step;
}

// Returns the largest sum of amounts, given by part, over the parts in any rank's input or output.
int64_t FullestBuffer(const Collective& collective, const std::vector<int64_t>& part_amounts) {
  int64_t fullest = 0;
  for (Rank r : collective.ranks()) {
    for (const std::vector<PartId>& buffer : {collective.InputParts(r), collective.OutputParts(r)}) {
      int64_t sum = 0;
      for (PartId p : buffer) sum += part_amounts[p.index()];
      fullest = std::max(fullest, sum);
    }
  }
  return fullest;
}

}  // namespace

CollectiveSizes::CollectiveSizes(const Collective& collective, int64_t size_bytes, int64_t element_bytes)
    : element_bytes_(element_bytes) {
  XCCL_CHECK(size_bytes >= 0 && element_bytes > 0);
  const CollectiveSpec& spec = collective.spec();
  const int64_t n = collective.num_members();
  const int64_t parts = collective.num_parts();
  const int64_t elements = size_bytes / element_bytes;
  int64_t size_elements = 0;
  const KindTraits& traits = TraitsOf(spec.kind);
  const bool scaled = spec.kind == CollectiveKind::kCustom || spec.kind == CollectiveKind::kAlltoallv;
  if (!scaled && !traits.counted) alike_chunks_ = collective.even_chunks();
  part_elements_.assign(static_cast<size_t>(alike_chunks_ > 0 ? std::min<int64_t>(1, parts) : parts), 0);
  if (scaled) {
    // The fullest buffer gets the given size; all parts are scaled in proportion.
    const std::vector<int64_t>& weights =
        spec.kind == CollectiveKind::kCustom ? spec.custom_weights : spec.counts;
    const int64_t fullest = FullestBuffer(collective, weights);
    for (int64_t p = 0; p < parts; ++p) part_elements_[p] = Scaled(elements, weights[p], fullest);
    size_elements = FullestBuffer(collective, part_elements_);
  } else if (traits.counted) {
    const int64_t total = std::accumulate(spec.counts.begin(), spec.counts.end(), int64_t{0});
    int64_t before = 0;
    for (int64_t p = 0; p < parts; ++p) {
      const int64_t begin = Scaled(elements, before, total);
      before += spec.counts[p];
      part_elements_[p] = Scaled(elements, before, total) - begin;
      size_elements += part_elements_[p];
    }
  } else if (spec.kind != CollectiveKind::kBarrier) {
    const bool whole = traits.parts == KindTraits::Parts::kOne || traits.parts == KindTraits::Parts::kListed;
    const int64_t share = whole ? elements : EvenShare(elements, n, element_bytes);
    std::fill(part_elements_.begin(), part_elements_.end(), share);
    size_elements = whole ? elements : share * n;
  }
  size_bytes_ = size_elements * element_bytes;
  CutChunks(collective);
}

CollectiveSizes CollectiveSizes::OfParts(const Collective& collective, std::vector<int64_t> part_elements,
                                         int64_t element_bytes) {
  XCCL_CHECK(std::ssize(part_elements) == collective.num_parts() && element_bytes > 0);
  CollectiveSizes sizes;
  sizes.element_bytes_ = element_bytes;
  sizes.part_elements_ = std::move(part_elements);
  sizes.size_bytes_ = FullestBuffer(collective, sizes.part_elements_) * element_bytes;
  sizes.CutChunks(collective);
  return sizes;
}

void CollectiveSizes::CutChunks(const Collective& collective) {
  const int64_t all = collective.num_chunks();
  const int64_t chunks = alike_chunks_ > 0 ? std::min<int64_t>(all, alike_chunks_) : all;
  chunk_elements_.reserve(static_cast<size_t>(chunks));
  for (int64_t c = 0; c < chunks; ++c) {
    const ChunkId chunk(c);
    const PartId part = collective.PartOf(chunk);
    const int64_t total = collective.PartWeight(part), before = collective.WeightBefore(chunk);
    chunk_elements_.push_back(Scaled(PartElements(part), before + collective.Weight(chunk), total) -
                              Scaled(PartElements(part), before, total));
  }
}

int64_t CollectiveSizes::LargestChunkBytes() const {
  return chunk_elements_.empty() ? 0 : std::ranges::max(chunk_elements_) * element_bytes_;
}

double BusFactor(CollectiveKind kind, int32_t members) {
  const double n = members;
  if (kind == CollectiveKind::kAllreduce) return 2 * (n - 1) / n;
  const KindTraits::Parts parts = TraitsOf(kind).parts;
  const bool spread = parts == KindTraits::Parts::kPerMember || parts == KindTraits::Parts::kPerPair;
  return spread ? (n - 1) / n : 1;
}

}  // namespace xccl
