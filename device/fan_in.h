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
  int64_t from_at = 0;  // offset of the slice in every member's slots
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

// One pair of the sum of a line, into `out`. Returns false if waiting was given up.
template <class N>
XCCL_DEVICE bool FanInPair(const N& numbers, const FanInArgs& args, const LinePair& pair, const Waiter* who,
                           Pair& out) {
  constexpr int kBatch = 4;
  const LlArgs& ll = args.ll;
  const GroupMember* const members = args.from->members;
  const int32_t count = args.from->count, own_place = ll.source != nullptr ? args.from->own_place : -1;
  const int64_t in_slot = args.from_at + pair.loaded_at();
  Pair own = {0, 0};
  if (own_place >= 0) {
    own = LoadUpTo16<N>(ll.source, pair, ll.bytes);
    own = {OwnOperand(numbers, ll.marks, own.low), OwnOperand(numbers, ll.marks, own.high)};
  }
  FanInSum<N> low, high;
  for (int32_t first = 0; first < count; first += kBatch) {
    Pair in[kBatch];
    bool waits = false;
    XCCL_UNROLL
    for (int b = 0; b < kBatch; ++b)
      if (first + b < count) in[b] = LoadPair(members[first + b].slots + in_slot);
    XCCL_UNROLL
    for (int b = 0; b < kBatch; ++b)
      waits = waits || (first + b < count && pair.flagged() && in[b].high != ll.in_flag);
    if (AnyLane(waits)) {
      for (int32_t m = first; m < count && m < first + kBatch; ++m)
        if (!AwaitLl128(members[m].slots + in_slot, pair.flagged(), ll.in_flag, members[m].rank, who))
          return false;
    }
    // Flags may have been seen after the data of the same loads were read, so the data are loaded again.
    XCCL_UNROLL
    for (int b = 0; b < kBatch; ++b)
      if (first + b < count) in[b] = LoadPair(members[first + b].slots + in_slot);
    XCCL_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      if (first + b >= count) break;
      if (first + b == own_place) {
        low.Add(numbers, own.low);
        high.Add(numbers, own.high);
      }
      low.Add(numbers, in[b].low);
      high.Add(numbers, in[b].high);
    }
  }
  if (own_place == count) {
    low.Add(numbers, own.low);
    high.Add(numbers, own.high);
  }
  out = {low.Get(numbers, ll.marks), high.Get(numbers, ll.marks)};
  return true;
}

template <ElementNumbers N>
XCCL_DEVICE_CALL bool FanInLl128(N numbers, const FanInArgs args, const Waiter* who) {
  const LlArgs& ll = args.ll;
  const LineLane own(ll.bytes);
  for (int32_t first = LineLane::First(); first < own.lines; first += own.stride) {
    Pair out[kMostPairs];
    // The line's last pair comes first, since it has the flag for which all wait.
    XCCL_UNROLL
    for (int p = kMostPairs - 1; p >= 0; --p)
      if (p < own.pairs && !FanInPair(numbers, args, own.At(first, p), who, out[p])) return false;
    XCCL_UNROLL
    for (int p = 0; p < kMostPairs; ++p) {
      if (p >= own.pairs) break;
      const LinePair pair = own.At(first, p);
      if (ll.destination != nullptr) StoreUpTo16<N>(ll.destination, out[p], pair, ll.bytes);
      if (ll.out == nullptr) continue;
      if (pair.last()) out[p].high = ll.out_flag;
      StoreLinePair(ll.out + pair.wire_at(), out[p], pair.last(), pair.exists);
    }
  }
  return true;
}

}  // namespace xccl::device
