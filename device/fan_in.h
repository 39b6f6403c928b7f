// Receives one message of every member of a fan-in and adds them up with the rank's own value, all in the
// order of the members, in float and rounded once (ReduceMembersReference in ir/numbers.h), where flags
// travel with the data. One loop polls all members' lines, so the loads of eight of them, of four in LL128,
// are in flight together. The simple protocol's fan-in is in device/group.h.
#pragma once

#include "device/group.h"
#include "device/ll.h"

namespace xccl::device {

// One slice. `ll.in` and `ll.peer` are not used; kScaleFirst applies to `ll.source`.
struct FanInArgs {
  LlArgs ll;
  const GroupConnection* from = nullptr;
  int64_t from_at = 0;  // of the slice, in every member's slots
};

// 8 bytes of a sum, one operand after the other.
template <class N>
struct FanInSum {
  using T = typename N::Element;
  Reduction<T, 8, 1> sum = {};
  bool any = false;

  XCCL_DEVICE void Add(const N& numbers, uint64_t operand) {
    const Bits<8> bits = BitCast<Bits<8>>(operand);
    if (any)
      sum.Add(numbers.op(), 0, bits);
    else
      sum.Set(0, bits);
    any = true;
  }
  XCCL_DEVICE uint64_t Get(const N& numbers, uint32_t marks) const {
    const Bits<8> value = sum.Get(0);
    return BitCast<uint64_t>(CombineBits<1, 8>(numbers, marks & kFinish, value, value));
  }
};
// The rank's own value as others would receive it: scaled, and rounded.
template <class N>
XCCL_DEVICE uint64_t OwnOperand(const N& numbers, uint32_t marks, uint64_t bits) {
  const Bits<8> value = BitCast<Bits<8>>(bits);
  return BitCast<uint64_t>(CombineBits<1, 8>(numbers, marks & kScaleFirst, value, value));
}

template <ElementNumbers N>
XCCL_DEVICE_CALL bool FanInLl(N numbers, const FanInArgs args, const Waiter* who) {
  constexpr int kBatch = 8;
  const LlArgs& ll = args.ll;
  const GroupMember* const members = args.from->members;
  const int32_t count = args.from->count, own_place = ll.source != nullptr ? args.from->own_place : -1;
  const uint32_t in_flag = static_cast<uint32_t>(ll.in_flag), out_flag = static_cast<uint32_t>(ll.out_flag);
  const int32_t units = (ll.bytes + kLlData - 1) / kLlData;
  for (int32_t i = ThreadIndex(); i < units; i += Threads()) {
    const int64_t at = args.from_at + i * kLlLine;
    const int32_t left = ll.bytes - i * kLlData;
    uint64_t own = 0;
    if (own_place >= 0) own = OwnOperand(numbers, ll.marks, LoadUpTo8<N>(ll.source + i * kLlData, left));
    FanInSum<N> sum;
    for (int32_t first = 0; first < count; first += kBatch) {
      LlLine lines[kBatch];
      XCCL_UNROLL
      for (int b = 0; b < kBatch; ++b)
        if (first + b < count) lines[b] = LoadLl(members[first + b].slots + at);
      XCCL_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        const int32_t m = first + b;
        if (m >= count) break;
        if (!Has(lines[b], in_flag)) lines[b] = AwaitLl(members[m].slots + at, in_flag, members[m].rank, who);
        if (!Has(lines[b], in_flag)) return false;
        if (m == own_place) sum.Add(numbers, own);
        sum.Add(numbers, static_cast<uint64_t>(lines[b].high) << 32 | lines[b].low);
      }
    }
    if (own_place == count) sum.Add(numbers, own);
    const uint64_t value = sum.Get(numbers, ll.marks);
    if (ll.out != nullptr)
      StoreLl(ll.out + i * kLlLine,
              {static_cast<uint32_t>(value), out_flag, static_cast<uint32_t>(value >> 32), out_flag});
    if (ll.destination != nullptr) StoreUpTo8<N>(ll.destination + i * kLlData, value, left);
  }
  return true;
}

#ifdef __CUDACC__

// Lanes as in MoveLl128; a warp handles four lines at a time.
template <ElementNumbers N>
XCCL_DEVICE_CALL bool FanInLl128(N numbers, const FanInArgs args, const Waiter* who) {
  constexpr int kBatch = 4;
  const LlArgs& ll = args.ll;
  const GroupMember* const members = args.from->members;
  const int32_t count = args.from->count, own_place = ll.source != nullptr ? args.from->own_place : -1;
  const int lane = ThreadIndex() & 7;
  const bool flagged = lane == 7;
  const int32_t lines = (ll.bytes + kLl128Data - 1) / kLl128Data;
  const int32_t own_line = (ThreadIndex() & 31) / 8;
  for (int32_t first_line = ThreadIndex() / 32 * 4; first_line < lines; first_line += Threads() / 8) {
    const bool has_line = first_line + own_line < lines;
    const int32_t line = has_line ? first_line + own_line : 0;
    const int32_t at = line * kLl128Data + lane * 16, left = has_line ? ll.bytes - at : 0;
    const int64_t in_slot = args.from_at + line * kLl128Line + lane * 16;
    uint64_t own_low = 0, own_high = 0;
    if (own_place >= 0) {
      own_low = OwnOperand(numbers, ll.marks, left > 0 ? LoadUpTo8<N>(ll.source + at, left) : 0);
      own_high = OwnOperand(numbers, ll.marks,
                            left > 8 && !flagged ? LoadUpTo8<N>(ll.source + at + 8, left - 8) : 0);
    }
    FanInSum<N> low, high;
    for (int32_t first = 0; first < count; first += kBatch) {
      Pair in[kBatch];
      XCCL_UNROLL
      for (int b = 0; b < kBatch; ++b)
        if (first + b < count) in[b] = LoadPair(members[first + b].slots + in_slot);
      XCCL_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        if (first + b >= count) break;
        const GroupMember& member = members[first + b];
        const bool flags = flagged && has_line;
        if (__any_sync(~0u, flags && in[b].high != ll.in_flag))
          in[b] = AwaitLl128(member.slots + in_slot, flags, ll.in_flag, member.rank, who);
        if (__any_sync(~0u, flags && in[b].high != ll.in_flag)) return false;
      }
      // Flags may have been seen after the data of the same loads were read, so the data are loaded again.
      XCCL_UNROLL
      for (int b = 0; b < kBatch; ++b)
        if (first + b < count) in[b] = LoadPair(members[first + b].slots + in_slot);
      XCCL_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        if (first + b >= count) break;
        if (first + b == own_place) {
          low.Add(numbers, own_low);
          high.Add(numbers, own_high);
        }
        low.Add(numbers, in[b].low);
        high.Add(numbers, in[b].high);
      }
    }
    if (own_place == count) {
      low.Add(numbers, own_low);
      high.Add(numbers, own_high);
    }
    Pair out = {low.Get(numbers, ll.marks), high.Get(numbers, ll.marks)};
    if (ll.destination != nullptr) {
      if (left > 0) StoreUpTo8<N>(ll.destination + at, out.low, left);
      if (left > 8 && !flagged) StoreUpTo8<N>(ll.destination + at + 8, out.high, left - 8);
    }
    if (ll.out != nullptr) {
      if (flagged) out.high = ll.out_flag;
      __syncwarp();
      if (has_line) StorePair(ll.out + line * kLl128Line + lane * 16, out);
    }
  }
  return true;
}

#else

template <ElementNumbers N>
bool FanInLl128(N numbers, const FanInArgs args, const Waiter* who) {
  const LlArgs& ll = args.ll;
  const int32_t count = args.from->count, own_place = ll.source != nullptr ? args.from->own_place : -1;
  const int32_t lines = (ll.bytes + kLl128Data - 1) / kLl128Data;
  const auto words_of = [&](int32_t m, int32_t line) {
    return reinterpret_cast<const uint64_t*>(args.from->members[m].slots + args.from_at + line * kLl128Line);
  };
  for (int32_t line = 0; line < lines; ++line) {
    for (int32_t m = 0; m < count; ++m) {
      Patience patience;
      for (uint64_t seen; (seen = LoadAcquireSystem(words_of(m, line) + 15)) != ll.in_flag;)
        if (!patience.Poll(who, Wait::kMessage, args.from->members[m].rank, ll.in_flag, seen)) return false;
    }
    uint64_t* const out =
        ll.out != nullptr ? reinterpret_cast<uint64_t*>(ll.out + line * kLl128Line) : nullptr;
    if (out != nullptr) HostTouch(out, kLl128Line);
    for (int word = 0; word < 15; ++word) {
      const int32_t at = line * kLl128Data + word * 8, left = ll.bytes - at;
      uint64_t own = 0;
      if (own_place >= 0)
        own = OwnOperand(numbers, ll.marks, left > 0 ? LoadUpTo8<N>(ll.source + at, left) : 0);
      FanInSum<N> sum;
      for (int32_t m = 0; m < count; ++m) {
        if (m == own_place) sum.Add(numbers, own);
        sum.Add(numbers, __atomic_load_n(words_of(m, line) + word, __ATOMIC_RELAXED));
      }
      if (own_place == count) sum.Add(numbers, own);
      const uint64_t value = sum.Get(numbers, ll.marks);
      if (ll.destination != nullptr && left > 0) StoreUpTo8<N>(ll.destination + at, value, left);
      if (out != nullptr) __atomic_store_n(out + word, value, __ATOMIC_RELAXED);
    }
    if (out != nullptr) __atomic_store_n(out + 15, ll.out_flag, __ATOMIC_RELEASE);
  }
  return true;
}

#endif

}  // namespace xccl::device
