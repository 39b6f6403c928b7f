// One block of a combine. All ranks go through the tokens of a worker in the same order, token by token, then
// home by home, and a token's rows come in the order of the ranks that they are of. So each row that is
// waited for is the next of its ring, nothing is kept, and the first token of that order that is not done
// anywhere can always go on: its rows below are there, and the slots above it are free.
#pragma once

#include "runtime/experts/cuda/block.h"

namespace xccl::device {

// Without the compiler's fused multiply-add, which would round once where the CPU ranks round twice.
XCCL_DEVICE float AddProduct(float sum, float weight, float value) {
#ifdef __CUDACC__
  return __fadd_rn(sum, __fmul_rn(weight, value));
#else
  return sum + weight * value;
#endif
}

template <class T>
class CombineBlock : public ExpertBlock {
 public:
  XCCL_DEVICE CombineBlock(const ExpertArgs& args, int32_t block) : ExpertBlock(args, block) {
    HostTouch(handle_.epoch, sizeof(uint32_t));
    epoch_ = *handle_.epoch;
  }

  XCCL_DEVICE void Run() {
    const int32_t of_group = rank_.lanes * rank_.ranks;
    const int32_t groups = (rank_.max_tokens + rank_.lanes - 1) / rank_.lanes;
    const int32_t mine = groups > worker_ ? (groups - worker_ - 1) / rank_.workers + 1 : 0;
    const int64_t all = int64_t{mine} * of_group;
    for (int64_t base = 0; base < all; base += Threads()) {
      const int32_t place = base + ThreadIndex() < all ? PlaceAt(base + ThreadIndex()) : -1;
      const bool seen =
          place >= 0 &&
          BitCast<uint32_t>(LoadData<4>(reinterpret_cast<const char*>(handle_.stamps + place))) == epoch_;
      s_.ready[ThreadIndex()] = seen ? 1 : 0;
      if (!SyncOr(seen)) continue;
      for (int32_t t = 0; t < Threads(); ++t)
        if (s_.ready[t] != 0 && !Add(PlaceAt(base + t))) return;
      Sync();
    }
  }

 private:
  // The place with this number in the worker's order, or -1.
  XCCL_DEVICE int32_t PlaceAt(int64_t number) const {
    const int32_t of_group = rank_.lanes * rank_.ranks, in_group = static_cast<int32_t>(number % of_group);
    const int32_t group = worker_ + rank_.workers * static_cast<int32_t>(number / of_group);
    const int32_t token = group * rank_.lanes + in_group / rank_.ranks;
    return token < rank_.max_tokens ? in_group % rank_.ranks * rank_.max_tokens + token : -1;
  }

  XCCL_DEVICE const RingEnd& Up() const {
    const int32_t place =
        rank_.in_at[(int64_t{Lane()} * rank_.depths + s_.depth - 1) * rank_.ranks + s_.parent];
    return rank_.up[place * rank_.workers + worker_];
  }
  XCCL_DEVICE const RingEnd& Down(int32_t child) const {
    const int32_t place = rank_.out_at[(int64_t{Lane()} * rank_.depths + s_.depth) * rank_.ranks + child];
    return rank_.down[place * rank_.workers + worker_];
  }

  XCCL_DEVICE bool Add(int32_t place) {
    LoadHeader(handle_.headers + place * rank_.header_bytes);
    FindWay();
    if (ThreadIndex() == 0) {
      s_.own = 0;
      for (int32_t k = 0; k < rank_.top_k; ++k) {
        if (!IsHere(Expert(k))) continue;
        if (args_.outputs_are == ExpertOutputs::kOfRows) {
          s_.own_entry[0] = place;
          s_.own_weight[0] = 1;
          s_.own = 1;
          break;
        }
        s_.own_entry[s_.own] = handle_.entry_of[place * int64_t{rank_.top_k} + k];
        s_.own_weight[s_.own++] = args_.outputs_are == ExpertOutputs::kWeighted ? Weight(k) : 1;
      }
    }
    Sync();
    if (s_.own > 0 && args_.outputs == nullptr) {
      if (ThreadIndex() == 0) Report(Who(), Wait::kNone, kRows, 0, 0);
      return false;
    }
    const bool home = Home() == rank_.rank;
    if (home || rank_.adds_on_way != 0) return AddHere(home);
    for (int32_t i = 0; i < s_.needs.count; ++i) {
      if (s_.needs.of[i] == rank_.rank) {
        if (!SendUp(-1)) return false;
      } else if (s_.via[i] >= 0 && !SendUp(s_.via[i])) {
        return false;
      }
    }
    return true;
  }

  // The branch by which the row number b comes that is added here, or -1: there is no such row.
  XCCL_DEVICE int32_t BranchOf(int32_t b) const {
    if (rank_.adds_on_way != 0) return s_.children.of[b];
    return s_.via[b];
  }

  // Adds the rank's own rows and those below, in ascending order.
  XCCL_DEVICE bool AddHere(bool home) {
    const int32_t rows = rank_.adds_on_way != 0 ? s_.children.count : s_.needs.count;
    bool good = true;
    for (int32_t b = ThreadIndex(); b < rows; b += Threads()) {
      s_.from[b] = nullptr;
      if (BranchOf(b) < 0) continue;
      const RingEnd& ring = Down(BranchOf(b));
      const uint64_t number = ring.state->count + Before(b);
      good = AwaitCounter<true>(ring.head, number + 1, Who(), Wait::kMessage, ring.peer) && good;
      s_.from[b] = Slot(ring, number, rank_.back_bytes);
    }
    if (ThreadIndex() == 0) {
      if (!home) good = AwaitSlot(Up()) && good;
      s_.to_row[0] = home ? args_.result + Token() * args_.back_row_bytes
                          : Slot(Up(), Up().state->count, rank_.back_bytes);
    }
    if (SyncOr(!good)) return false;
    Sum(s_.own, rows);
    Sync();
    for (int32_t b = ThreadIndex(); b < rows; b += Threads()) {
      if (BranchOf(b) < 0 || !IsLast(b, rows)) continue;
      const RingEnd& ring = Down(BranchOf(b));
      ring.state->count += Before(b) + 1;
      StoreCredit(ring.tail, ring.state->count);
    }
    if (ThreadIndex() == 0 && !home) StoreReleaseSystem(Up().head, ++Up().state->count);
    Sync();
    return true;
  }
  // Rows before b that come by the same branch; whether none comes after it.
  XCCL_DEVICE uint64_t Before(int32_t b) const {
    uint64_t before = 0;
    for (int32_t j = 0; j < b; ++j) before += BranchOf(j) == BranchOf(b) ? 1 : 0;
    return before;
  }
  XCCL_DEVICE bool IsLast(int32_t b, int32_t rows) const {
    for (int32_t j = b + 1; j < rows; ++j)
      if (BranchOf(j) == BranchOf(b)) return false;
    return true;
  }

  // Sends one row towards the home: the sum of this rank's entries, or the next row that a branch brings.
  XCCL_DEVICE bool SendUp(int32_t branch) {
    bool good = true;
    if (ThreadIndex() == 0) {
      good = AwaitSlot(Up());
      s_.to_row[0] = Slot(Up(), Up().state->count, rank_.back_bytes);
      if (branch >= 0) {
        const RingEnd& ring = Down(branch);
        good = good && AwaitCounter<true>(ring.head, ring.state->count + 1, Who(), Wait::kMessage, ring.peer);
        s_.from[0] = Slot(ring, ring.state->count, rank_.back_bytes);
      }
    }
    if (SyncOr(!good)) return false;
    if (branch < 0)
      Sum(s_.own, 0);
    else
      for (int64_t at = int64_t{ThreadIndex()} * 16; at < args_.back_row_bytes; at += int64_t{Threads()} * 16)
        StoreData<16>(s_.to_row[0] + at, LoadData<16>(s_.from[0] + at));
    Sync();
    if (ThreadIndex() == 0) {
      if (branch >= 0) StoreCredit(Down(branch).tail, ++Down(branch).state->count);
      StoreReleaseSystem(Up().head, ++Up().state->count);
    }
    Sync();
    return true;
  }

  struct Elements {
    T of[16 / sizeof(T)];
  };
  // In float, rounded once.
  XCCL_DEVICE void Sum(int32_t own, int32_t rows) {
    constexpr int kElements = static_cast<int>(16 / sizeof(T));
    for (int64_t at = int64_t{ThreadIndex()} * 16; at < args_.back_row_bytes; at += int64_t{Threads()} * 16) {
      float sum[kElements] = {};
      for (int32_t e = 0; e < own; ++e) {
        const Elements row =
            BitCast<Elements>(LoadData<16>(args_.outputs + s_.own_entry[e] * args_.back_row_bytes + at));
        XCCL_UNROLL
        for (int i = 0; i < kElements; ++i) sum[i] = AddProduct(sum[i], s_.own_weight[e], Widen(row.of[i]));
      }
      for (int32_t b = 0; b < rows; ++b) {
        if (s_.from[b] == nullptr) continue;
        const Elements row = BitCast<Elements>(LoadData<16>(s_.from[b] + at));
        XCCL_UNROLL
        for (int i = 0; i < kElements; ++i) sum[i] += Widen(row.of[i]);
      }
      Elements rounded;
      XCCL_UNROLL
      for (int i = 0; i < kElements; ++i) Narrow(sum[i], rounded.of[i]);
      StoreData<16>(s_.to_row[0] + at, BitCast<Bits<16>>(rounded));
    }
  }

  uint32_t epoch_;
};

}  // namespace xccl::device
