// The blocks of dispatch and combine share this code: a token's header in shared memory, the ranks that it
// needs, and the branches of its tree at this rank. The rule is BranchFinder's (dispatch/plan.h), told from
// below: each rank that needs the row climbs towards the home, one thread for each.
#pragma once

#include "device/numbers.h"
#include "device/spin.h"
#include "runtime/experts/cuda/abi.h"

namespace xccl::device {

// Ascending numbers, each once.
struct RankList {
  int32_t count;
  int32_t of[kMostPositions];
};

struct ExpertShared {
  Waiter waiter;
  alignas(16) char header[kMostHeaderBytes];
  int64_t chosen[kMostPositions];  // experts as the caller gave them
  int32_t value[kMostPositions], first[kMostPositions];
  RankList needs;               // ranks that hold an expert of the token
  RankList children;            // branches of the token at this rank
  int32_t via[kMostPositions];  // by rank needed: the branch here that leads to it; -1: it is not below
  int32_t depth, parent;        // of this rank in the token's tree
  int32_t needed;               // this rank holds an expert
  int32_t own;                  // its entries in combine, in the order of positions
  int32_t own_entry[kMostPositions];
  float own_weight[kMostPositions];
  const char* from[kMostPositions];
  char* to_header[kMostPositions + 1];
  char* to_row[kMostPositions + 1];
  int32_t lane_value[kMostExpertThreads];
  uint8_t ready[kMostExpertThreads];
};

class ExpertBlock {
 public:
#ifdef __CUDACC__
  XCCL_DEVICE static ExpertShared& Shared() {
    __shared__ ExpertShared shared;
    return shared;
  }
#else
  static ExpertShared& Shared() { return *static_cast<ExpertShared*>(host_place.team->shared); }
#endif

  XCCL_DEVICE ExpertBlock(const ExpertArgs& args, int32_t block)
      : args_(args), rank_(*args.rank), handle_(args.handle), s_(Shared()), block_(block) {
    HostTouch(args.rank, sizeof(ExpertRank));
    worker_ = block % rank_.workers;
    if (ThreadIndex() == 0) s_.waiter = {&args.launch, rank_.rank, 0, block, -1, 0};
    Sync();
  }

 protected:
  XCCL_DEVICE const Waiter* Who() const { return &s_.waiter; }
  XCCL_DEVICE int32_t Home() const { return BitCast<int32_t>(CopyWord(0)); }
  XCCL_DEVICE int32_t Token() const { return BitCast<int32_t>(CopyWord(4)); }
  XCCL_DEVICE float Weight(int32_t position) const { return BitCast<float>(CopyWord(8 + 4 * position)); }
  XCCL_DEVICE int32_t Expert(int32_t position) const { return ExpertIn(s_.header, position); }
  XCCL_DEVICE int32_t Place() const { return Home() * rank_.max_tokens + Token(); }
  XCCL_DEVICE int32_t Lane() const { return Token() % rank_.lanes; }
  XCCL_DEVICE bool IsHere(int32_t expert) const {
    return expert >= 0 && expert / rank_.local_experts == rank_.rank;
  }
  XCCL_DEVICE int32_t ExpertIn(const char* header, int32_t position) const {
    return *reinterpret_cast<const int16_t*>(header + 8 + 4 * rank_.top_k + 2 * position);
  }

  // Brings a header into shared memory. All threads call it, with a barrier before that lets it go.
  XCCL_DEVICE void LoadHeader(const char* from) {
    for (int32_t at = ThreadIndex() * 16; at < rank_.header_bytes; at += Threads() * 16)
      *reinterpret_cast<Bits<16>*>(s_.header + at) = LoadData<16>(from + at);
    Sync();
  }

  // Finds needs, children, via, depth and parent of the token in the header. All threads call it.
  XCCL_DEVICE_CALL void FindWay() {
    const int32_t top_k = rank_.top_k;
    for (int32_t k = ThreadIndex(); k < top_k; k += Threads())
      s_.value[k] = Expert(k) < 0 ? -1 : Expert(k) / rank_.local_experts;
    Distinct(s_.needs, top_k);
    const int32_t home = Home();
    if (ThreadIndex() == 0) {
      s_.parent = rank_.rank == home ? -1 : Next(rank_.rank);
      s_.depth = 0;
      for (int32_t at = rank_.rank; at != home && s_.depth <= rank_.depths; at = Next(at)) ++s_.depth;
      s_.needed = 0;
    }
    Sync();
    for (int32_t i = ThreadIndex(); i < s_.needs.count; i += Threads()) {
      int32_t at = s_.needs.of[i], via = -1;
      if (at == rank_.rank) s_.needed = 1;
      for (int32_t step = 0; at != home && at != rank_.rank && step <= rank_.depths; ++step) {
        const int32_t next = Next(at);
        if (next == rank_.rank) via = at;
        at = next;
      }
      s_.via[i] = s_.value[i] = via;
    }
    Distinct(s_.children, s_.needs.count);
  }

  // Returns the sum of the values of lower lanes, and of all lanes. All lanes of a warp call it.
  struct LaneSums {
    int32_t before, all;
  };
  XCCL_DEVICE LaneSums SumLanes(int32_t value) {
    const int32_t lane = ThreadIndex() % Lanes(), warp = ThreadIndex() - lane;
    s_.lane_value[ThreadIndex()] = value;
    SyncLanes();
    LaneSums sums = {0, 0};
    for (int32_t l = 0; l < Lanes(); ++l) {
      const int32_t of = s_.lane_value[warp + l];
      sums.all += of;
      if (l < lane) sums.before += of;
    }
    SyncLanes();
    return sums;
  }

  // The sender's wait for a free slot; the state's count is the next message's number.
  XCCL_DEVICE bool AwaitSlot(const RingEnd& ring) const {
    return AwaitCounter<true>(ring.tail, ring.state->count + 1 - static_cast<uint64_t>(ring.num_slots), Who(),
                              Wait::kCredit, ring.peer);
  }
  XCCL_DEVICE static char* Slot(const RingEnd& ring, uint64_t message, int64_t slot_bytes) {
    return ring.slots + static_cast<int64_t>(message % static_cast<uint64_t>(ring.num_slots)) * slot_bytes;
  }

  const ExpertArgs& args_;
  const ExpertRank& rank_;
  const ExpertHandle& handle_;
  ExpertShared& s_;
  const int32_t block_;
  int32_t worker_;

 private:
  XCCL_DEVICE uint32_t CopyWord(int32_t at) const {
    return *reinterpret_cast<const uint32_t*>(s_.header + at);
  }

  // Puts the values that are not -1 into a list, ascending and each once. All threads call it.
  XCCL_DEVICE void Distinct(RankList& list, int32_t values) {
    Sync();
    for (int32_t k = ThreadIndex(); k < values; k += Threads()) {
      bool first = s_.value[k] >= 0;
      for (int32_t j = 0; j < k; ++j) first = first && s_.value[j] != s_.value[k];
      s_.first[k] = first ? 1 : 0;
    }
    if (ThreadIndex() == 0) list.count = 0;
    Sync();
    for (int32_t k = ThreadIndex(); k < values; k += Threads()) {
      if (s_.first[k] == 0) continue;
      int32_t before = 0, behind = 0;
      for (int32_t j = 0; j < values; ++j) {
        if (s_.first[j] == 0) continue;
        before += s_.value[j] < s_.value[k] ? 1 : 0;
        behind += s_.value[j] > s_.value[k] ? 1 : 0;
      }
      list.of[before] = s_.value[k];
      if (behind == 0) list.count = before + 1;
    }
    Sync();
  }

  // The rank above `at` on the token's way.
  XCCL_DEVICE int32_t Next(int32_t at) const {
    const int32_t home = Home(), domain = rank_.domains[at];
    const bool own = domain == rank_.domains[home];
    const int64_t tree = int64_t{Lane()} * rank_.ranks + home;
    const int16_t* const parents = rank_.parents + tree * rank_.ranks;
    if (rank_.entries == nullptr || (own && rank_.nested == 0)) return parents[at];
    const int32_t entry = own ? home : rank_.entries[tree * rank_.num_domains + domain];
    if (entry < 0) return parents[at];
    if (rank_.nested != 0) return NextNested(at, home, own, entry);
    int32_t first = at;
    for (int32_t i = 0; i < s_.needs.count; ++i) {
      const int32_t rank = s_.needs.of[i];
      if (rank_.domains[rank] == domain && (rank ^ entry) < (first ^ entry)) first = rank;
    }
    return at == first ? parents[entry] : first;
  }

  // Entry::kNested: of the ranks that need the row and are nearer to the entry the one in the smallest block
  // with `at`; of several there the nearest. The home where there is none.
  XCCL_DEVICE int32_t NextNested(int32_t at, int32_t home, bool own, int32_t entry) const {
    int32_t from = own ? home : -1;
    for (int32_t i = 0; i < s_.needs.count; ++i) {
      const int32_t rank = s_.needs.of[i];
      if (rank_.domains[rank] != rank_.domains[at] || (rank ^ entry) >= (at ^ entry)) continue;
      const bool nearer = from >= 0 && (rank ^ entry) < (from ^ entry);
      if (from < 0 || IsShorter(rank ^ at, from ^ at) || (nearer && !IsShorter(from ^ at, rank ^ at)))
        from = rank;
    }
    return from < 0 ? home : from;
  }
  // Whether a number that is not negative has fewer bits than another.
  XCCL_DEVICE static bool IsShorter(int32_t a, int32_t b) { return a < b && a < (a ^ b); }
};

}  // namespace xccl::device
