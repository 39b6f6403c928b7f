// Collectives: which rank holds which data before and after. Chunks, their sizes and both conditions follow
// from the kind, the members and the counts. Only this file defines what an allgather is.
//
// Parts (pieces of user data) come in this order. allgather(v), gather: one per source member;
// reduce_scatter(v), scatter: one per destination member; alltoall(v): one per (source, destination),
// source-major; sendrecv: one per pair; broadcast, reduce, allreduce, barrier: one. A part is cut into
// chunks of integer weight, and chunk ids run part by part. A contribution is named by the rank whose data
// it is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace xccl {

using PartId = TypedId<struct PartTag>;

enum class CollectiveKind : uint8_t {
  kAllreduce,
  kAllgather,
  kAllgatherv,
  kReduceScatter,
  kReduceScatterv,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAlltoall,
  kAlltoallv,
  kSendrecv,
  kBarrier,
  kCustom,
};

// A kind as data: its parts, and who holds each part before and after. Only in reductions do all members hold
// a part before: each member holds its own contribution.
struct KindTraits {
  enum class Parts : uint8_t { kOne, kPerMember, kPerPair, kListed };
  // kOwn: the member that the part is for; of a pair, the source before and the destination after.
  enum class Holders : uint8_t { kAll, kRoot, kOwn };

  std::string_view name;
  Parts parts = Parts::kOne;
  Holders before = Holders::kAll, after = Holders::kAll;
  bool counted = false;  // the spec's counts say how large the parts are
};
// kCustom has listed parts; its tables say the rest.
const KindTraits& TraitsOf(CollectiveKind kind);

std::string_view ToString(CollectiveKind kind);                       // "reduce_scatter"
StatusOr<CollectiveKind> ParseCollectiveKind(std::string_view name);  // error has "did you mean"
std::span<const CollectiveKind> AllNamedCollectives();                // all but kCustom

// The next four functions judge by the name alone; they are false for kCustom, whose table decides.
// One member, the root, begins or ends with all data: broadcast, reduce, gather, scatter.
bool IsRooted(CollectiveKind kind);
// Members end with sums of several contributions.
bool IsReduction(CollectiveKind kind);
// All members end with the same data: broadcast, allgather, allreduce.
bool EndsAlike(CollectiveKind kind);
// All members end with the same sums. A barrier is an allreduce of no bytes.
inline bool IsAllreduce(CollectiveKind kind) { return IsReduction(kind) && EndsAlike(kind); }

// One rank's state of one chunk: the set of contributions it holds or must hold, sorted by rank.
struct Holding {
  Rank rank;
  std::span<const Rank> contributions;  // points into the Collective
};

// One row of a user-defined table.
struct TableEntry {
  Rank rank;
  PartId part;
  std::vector<Rank> contributions;  // sorted, not empty
  bool operator==(const TableEntry&) const = default;
};

// The definition of a Collective. Ranks are the topology's; members must be distinct.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::kAllgather;
  std::vector<Rank> ranks;      // members, in order: member i is ranks[i]
  std::optional<Rank> root;     // broadcast, reduce, gather, scatter; a member
  std::vector<int64_t> counts;  // allgatherv, reduce_scatterv: n relative part sizes; alltoallv: n*n,
                                // row = source; zero is legal
  std::vector<std::pair<Rank, Rank>> pairs;  // sendrecv: source, destination; distinct
  std::string custom_name;                   // kCustom
  std::vector<int64_t> custom_weights;       // kCustom: relative size of each part
  std::vector<TableEntry> pre, post;         // kCustom
  bool operator==(const CollectiveSpec&) const = default;
};

// The largest number of parts of a collective but an alltoall, and of any plan that is not compressed. Uneven
// parts take some 40 bytes each in a Collective and its sizes, so the limit is about 3 GB.
inline constexpr int64_t kMostParts = int64_t{1} << 26;
// The largest number of ranks of an alltoall. A compressed schedule of more than kMostParts parts moves only
// chunks of the lowest rank of each orbit, because ids of 32 bits cannot name all parts and chunks.
inline constexpr int64_t kMostOfAlltoall = int64_t{1} << 20;
// The largest number of chunks of a part in a plan file. Their weights of up to 2^40 add up to less than
// 2^63.
inline constexpr int64_t kMostPartChunks = (int64_t{1} << 23) - 1;

// The number of parts of a collective with this spec. The spec need not be checked yet.
int64_t NumParts(const CollectiveSpec& spec);

// Invariants: the spec is consistent; every part has at least one chunk; weights are >= 0 and, unless a
// part is empty, not all zero in it. Immutable. Spans that Before and After return live as long as the
// Collective.
class Collective {
 public:
  // Makes one chunk of every part. Errors: kInvalidInput naming what is inconsistent.
  static StatusOr<Collective> Create(CollectiveSpec spec);
  // Returns the collective with every part cut into `chunks` chunks of weight 1. Requires: chunks >= 1.
  Collective WithChunks(int32_t chunks) const;
  // Cuts part p into chunks of weights[p]. Requires: one non-empty list per part.
  Collective WithWeights(const std::vector<std::vector<int64_t>>& weights) const;
  // Cuts parts likewise, by two flat lists: the number of chunks of each part, and all weights part by
  // part. Requires: every part has at least one chunk.
  Collective WithWeights(std::span<const int32_t> chunks, std::span<const int64_t> weights) const;

  const CollectiveSpec& spec() const { return spec_; }
  CollectiveKind kind() const { return spec_.kind; }
  std::string name() const;  // "allgather", or the custom name
  std::span<const Rank> ranks() const { return spec_.ranks; }
  int32_t num_members() const { return static_cast<int32_t>(spec_.ranks.size()); }
  std::optional<int32_t> MemberIndex(Rank r) const;  // constant time
  int64_t num_parts() const { return num_parts_; }
  int64_t num_chunks() const { return even_chunks_ > 0 ? num_parts_ * even_chunks_ : part_first_.back(); }
  PartId PartOf(ChunkId c) const {
    return even_chunks_ > 0 ? PartId(c.value / even_chunks_) : chunk_part_[c.index()];
  }
  ChunkId FirstChunk(PartId p) const {
    return ChunkId(even_chunks_ > 0 ? p.value * even_chunks_ : part_first_[p.index()]);
  }
  int32_t ChunksOf(PartId p) const {
    return even_chunks_ > 0 ? even_chunks_ : part_first_[p.index() + 1] - part_first_[p.index()];
  }
  int64_t Weight(ChunkId c) const { return even_chunks_ > 0 ? 1 : chunk_weight_[c.index()]; }
  // The sum of the weights in c's part before c.
  int64_t WeightBefore(ChunkId c) const {
    return even_chunks_ > 0 ? c.value % even_chunks_ : chunk_weight_before_[c.index()];
  }
  int64_t PartWeight(PartId p) const { return even_chunks_ > 0 ? even_chunks_ : part_weight_[p.index()]; }
  bool HasEvenParts() const;  // every part has the same number of chunks
  // The number of chunks of every part if all parts have it and all weights are 1, else 0.
  int32_t even_chunks() const { return even_chunks_; }
  // True if some rank needs a sum of several contributions.
  bool Reduces() const { return reduces_; }

  // True if the chunk is empty at every size, because its weight or its part's count is zero. No rank needs
  // it.
  bool AlwaysEmpty(ChunkId c) const;

  // The precondition or postcondition of a chunk: one entry per rank that holds or needs something, in
  // member order. After has no entry for a chunk that is always empty. Clears `out` first. Cost: linear in
  // the entries.
  void Before(ChunkId c, std::vector<Holding>& out) const { Conditions(PartOf(c), true, out); }
  void After(ChunkId c, std::vector<Holding>& out) const {
    AlwaysEmpty(c) ? out.clear() : Conditions(PartOf(c), false, out);
  }

  // The parts in a rank's input and output buffer, in this order and without gaps. A part may be in both.
  // Some buffers are unused: in a broadcast, only the root reads its input.
  std::vector<PartId> InputParts(Rank r) const { return PartsAt(r, true); }
  std::vector<PartId> OutputParts(Rank r) const { return PartsAt(r, false); }
  // In place (NCCL's rules), input and output share memory. The input starts at this position of
  // OutputParts (allgather, gather's root), or the output at this position of InputParts (reduce_scatter,
  // scatter's root). Absent if the kind has no in-place form for this rank (alltoall, sendrecv, custom).
  struct InPlace {
    int32_t input_at_output_part = 0;
    int32_t output_at_input_part = 0;
    bool operator==(const InPlace&) const = default;
  };
  std::optional<InPlace> InPlaceOf(Rank r) const;

  bool operator==(const Collective& other) const {
    return spec_ == other.spec_ && even_chunks_ == other.even_chunks_ && part_first_ == other.part_first_ &&
           chunk_weight_ == other.chunk_weight_;
  }

 private:
  Collective() = default;
  // Cuts every part into `chunks` chunks of weight 1.
  void CutEvenly(int32_t chunks);
  void Conditions(PartId p, bool before, std::vector<Holding>& out) const;
  // Returns the member that alone holds part p before or after. Requires: not all members hold the part.
  size_t HolderOf(PartId p, bool before) const;
  std::vector<PartId> PartsAt(Rank r, bool before) const;

  CollectiveSpec spec_;
  std::vector<Rank> sorted_ranks_;
  std::vector<int32_t> member_of_rank_;  // -1 where not a member
  int64_t num_parts_ = 0;
  int32_t even_chunks_ = 1;
  // Empty if parts are even, because an alltoall of 131,072 ranks has 17 billion parts.
  std::vector<int32_t> part_first_;  // first chunk id by part, num_parts + 1 entries
  std::vector<PartId> chunk_part_;
  std::vector<int64_t> chunk_weight_, chunk_weight_before_, part_weight_;
  // kCustom, for its table pre and its table post: rows by part; and parts by member, ascending.
  struct TableIndex {
    std::vector<std::vector<int32_t>> rows_of_part;
    std::vector<std::vector<PartId>> parts_of_member;
  };
  TableIndex pre_, post_;
  bool reduces_ = false;
};

}  // namespace xccl
