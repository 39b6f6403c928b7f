// The traffic of a schedule or of its program: which chunks and contributions each chain of links carries.
// Rule P10 compares the two.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/random.h"

namespace xccl {

// For every chunk the multiset of (chain of links, contributions): one entry for each message that carries
// the chunk. A message on a tree counts on the chain to each of its ends. The set is kept as one sum of
// hashes a chunk, so chunks with equal sums have equal traffic, up to a 64-bit collision.
class Traffic {
 public:
  // One chunk over one chain: hashes of the chain and of the contributions.
  using Entry = std::pair<uint64_t, uint64_t>;

  // Keeps the entries of chunk `listed` themselves, too.
  explicit Traffic(int32_t num_chunks, std::optional<ChunkId> listed = std::nullopt)
      : sums_(static_cast<size_t>(num_chunks), 0), listed_(listed) {}

  static uint64_t HashOf(std::span<const LinkId> chain) {
    uint64_t hash = chain.size();
    for (LinkId l : chain) hash = Mix(hash + static_cast<uint64_t>(l.value));
    return hash;
  }
  // The hash of one contribution. The hash of a set of contributions is the sum of the hashes of its members.
  static uint64_t HashOf(Rank contributor) { return Mix(static_cast<uint64_t>(contributor.value)); }

  void Add(ChunkId chunk, uint64_t chain, uint64_t contributions) {
    sums_[chunk.index()] += Mix(chain ^ Mix(contributions));
    if (listed_ == chunk) entries_.emplace_back(chain, contributions);
  }

  uint64_t SumOf(ChunkId chunk) const { return sums_[chunk.index()]; }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<uint64_t> sums_;
  std::optional<ChunkId> listed_;
  std::vector<Entry> entries_;
};

}  // namespace xccl
