#include "ir/sizes.h"

#include <algorithm>

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

}  // namespace

CollectiveSizes::CollectiveSizes(const Collective& collective, int64_t size_bytes, int64_t element_bytes)
    : element_bytes_(element_bytes) {
  XCCL_CHECK(size_bytes >= 0 && element_bytes > 0);
  const CollectiveSpec& spec = collective.spec();
  const int64_t n = collective.num_members();
  const int64_t parts = collective.num_parts();
  const int64_t elements = size_bytes / element_bytes;
  part_elements_.assign(static_cast<size_t>(parts), 0);
  int64_t size_elements = 0;
  switch (spec.kind) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kSendrecv:
      std::fill(part_elements_.begin(), part_elements_.end(), elements);
      size_elements = elements;
      break;
    case CollectiveKind::kBarrier:
      break;
    case CollectiveKind::kAllgather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kAlltoall: {
      const int64_t share = EvenShare(elements, n, element_bytes);
      std::fill(part_elements_.begin(), part_elements_.end(), share);
      size_elements = share * n;
      break;
    }
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kReduceScatterv: {
      int64_t total = 0;
      for (int64_t count : spec.counts) total += count;
      int64_t before = 0;
      for (int64_t p = 0; p < parts; ++p) {
        const int64_t begin = Scaled(elements, before, total);
        before += spec.counts[p];
        part_elements_[p] = Scaled(elements, before, total) - begin;
        size_elements += part_elements_[p];
      }
      break;
    }
    case CollectiveKind::kAlltoallv:
    case CollectiveKind::kCustom: {
      // The fullest buffer gets the given size; all parts are scaled in proportion.
      const auto weight = [&](PartId p) {
        return spec.kind == CollectiveKind::kCustom ? spec.custom_weights[p.index()] : spec.counts[p.index()];
      };
      int64_t fullest = 0;
      for (Rank r : spec.ranks) {
        for (const std::vector<PartId>& buffer : {collective.InputParts(r), collective.OutputParts(r)}) {
          int64_t sum = 0;
          for (PartId p : buffer) sum += weight(p);
          fullest = std::max(fullest, sum);
        }
      }
      for (int64_t p = 0; p < parts; ++p) part_elements_[p] = Scaled(elements, weight(PartId(p)), fullest);
      for (Rank r : spec.ranks) {
        for (const std::vector<PartId>& buffer : {collective.InputParts(r), collective.OutputParts(r)}) {
          int64_t sum = 0;
          for (PartId p : buffer) sum += part_elements_[p.index()];
          size_elements = std::max(size_elements, sum);
        }
      }
      break;
    }
  }
  size_bytes_ = size_elements * element_bytes;
  CutChunks(collective);
}

CollectiveSizes CollectiveSizes::OfParts(const Collective& collective, std::vector<int64_t> part_elements,
                                         int64_t element_bytes) {
  XCCL_CHECK(static_cast<int32_t>(part_elements.size()) == collective.num_parts() && element_bytes > 0);
  CollectiveSizes sizes;
  sizes.element_bytes_ = element_bytes;
  sizes.part_elements_ = std::move(part_elements);
  for (Rank r : collective.ranks()) {
    for (const std::vector<PartId>& buffer : {collective.InputParts(r), collective.OutputParts(r)}) {
      int64_t bytes = 0;
      for (PartId p : buffer) bytes += sizes.PartBytes(p);
      sizes.size_bytes_ = std::max(sizes.size_bytes_, bytes);
    }
  }
  sizes.CutChunks(collective);
  return sizes;
}

void CollectiveSizes::CutChunks(const Collective& collective) {
  chunk_begin_.reserve(static_cast<size_t>(collective.num_chunks()));
  chunk_elements_.reserve(static_cast<size_t>(collective.num_chunks()));
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    const ChunkId chunk(c);
    const PartId part = collective.PartOf(chunk);
    const int64_t total = collective.PartWeight(part), before = collective.WeightBefore(chunk);
    const int64_t begin = Scaled(part_elements_[part.index()], before, total);
    chunk_begin_.push_back(begin);
    chunk_elements_.push_back(Scaled(part_elements_[part.index()], before + collective.Weight(chunk), total) -
                              begin);
  }
}

double BusFactor(CollectiveKind kind, int32_t members) {
  const double n = members;
  switch (kind) {
    case CollectiveKind::kAllreduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
      return (n - 1) / n;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kSendrecv:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kCustom:
      return 1;
  }
  return 1;
}

}  // namespace xccl
