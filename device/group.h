// Moves elements where a multicast or reduce group takes the place of a slot. A received value is the
// reduction of the members' messages, by the switch or by this rank; a sent value is stored at all members.
// There are two methods, chosen by whether the group has a multicast address:
//   switch    device/switch.h. Needs sm_90 and units of 4 bytes or more; a reduction also needs a type and
//             operator that the instruction supports with this library's meaning.
//   by hand   reads every member's slot in ascending order and reduces in float if the type is narrower,
//             rounding once (ReduceMembersReference of ir/numbers.h); stores to every member's slot.
// Elements before and after the whole units of a slice always go by hand. docs/kernels.md, section 5.
#pragma once

#include "device/switch.h"

namespace xccl::device {

// One slice. At most one of `received` and `from` is set, and at most one of `sent` and `to`.
struct GroupMove {
  const char* received = nullptr;         // an ordinary message
  const GroupConnection* from = nullptr;  // a reduce group or a fan-in
  const char* local = nullptr;
  char* stored = nullptr;
  char* sent = nullptr;                 // an ordinary message
  const GroupConnection* to = nullptr;  // a multicast group
  int64_t from_at = 0, to_at = 0;       // offset of the slice in the groups' slots
  int64_t bytes = 0;                    // whole elements
  uint32_t marks = 0;                   // kScaleFirst applies to `local`; kFinish
  int32_t threads = 1;                  // the first threads of the block, which share the work
};

// Does a fan-in add the local value itself?
XCCL_DEVICE bool FansIn(const GroupMove& args) { return args.from != nullptr && args.from->own_place >= 0; }

// Loads kUnits units of operand `o`: of a member, or of the local value, the `own`-th operand.
template <int kWidth, int kUnits, class N>
XCCL_DEVICE void LoadOperand(const N& numbers, const GroupMove& args, int32_t o, int32_t own, int64_t at,
                             int64_t stride, Bits<kWidth>* value) {
  const char* const from =
      (o == own ? args.local : args.from->members[o > own ? o - 1 : o].slots + args.from_at) + at;
  XCCL_UNROLL
  for (int u = 0; u < kUnits; ++u) {
    value[u] = LoadData<kWidth>(from + u * stride);
    // The local value is scaled and rounded as a message of it would be.
    if (o == own) value[u] = CombineBits<1, kWidth>(numbers, args.marks & kScaleFirst, value[u], value[u]);
  }
}
// Reduces kUnits units of every member, from offset `at` of the slice on. A fan-in adds the units of the
// local value, too, in its place among the members.
template <int kWidth, int kUnits, class N>
XCCL_DEVICE void ReduceMembers(const N& numbers, const GroupMove& args, int64_t at, int64_t stride,
                               Bits<kWidth>* value) {
  const GroupConnection& group = *args.from;
  const int32_t own = FansIn(args) && args.local != nullptr ? group.own_place : group.count + 1;
  const int32_t operands = group.count + (own <= group.count ? 1 : 0);
  Reduction<typename N::Element, kWidth, kUnits> sum;
  LoadOperand<kWidth, kUnits>(numbers, args, 0, own, at, stride, value);
  XCCL_UNROLL
  for (int u = 0; u < kUnits; ++u) sum.Set(u, value[u]);
  for (int32_t o = 1; o < operands; ++o) {
    LoadOperand<kWidth, kUnits>(numbers, args, o, own, at, stride, value);
    XCCL_UNROLL
    for (int u = 0; u < kUnits; ++u) sum.Add(numbers.op(), u, value[u]);
  }
  XCCL_UNROLL
  for (int u = 0; u < kUnits; ++u) value[u] = sum.Get(u);
}

// The largest unit of arithmetic. Each byte is widened by itself, so bytes go by fours; sixteen at once
// would be far too much code.
template <class T>
inline constexpr int kGroupWidth = sizeof(T) == 1 ? 4 : 16;

// Computes the values of kUnits units of kWidth bytes, `stride` apart.
template <int kWidth, int kUnits, class N>
XCCL_DEVICE void GroupValues(const N& numbers, const GroupMove& args, int64_t at, int64_t stride,
                             Bits<kWidth>* value) {
  using T = typename N::Element;
  if (args.from != nullptr) {
    bool pulled = false;
    if constexpr (kWidth >= 4 && kSwitchType<T>) {
      if (args.from->multicast != nullptr && SwitchReduces(numbers)) {
        XCCL_UNROLL
        for (int u = 0; u < kUnits; ++u)
          value[u] =
              SwitchLoad<kWidth, T>(numbers.op(), args.from->multicast + args.from_at + at + u * stride);
        pulled = true;
      }
    }
    if (!pulled) {
      // Narrow elements are widened, so fewer units are handled at once to save registers.
      constexpr int kPart = kUnits > 2 && sizeof(T) == 2 ? 2 : kUnits;
      XCCL_UNROLL
      for (int u = 0; u < kUnits; u += kPart)
        ReduceMembers<kWidth, kPart>(numbers, args, at + u * stride, stride, value + u);
    }
  } else if (args.received != nullptr) {
    XCCL_UNROLL
    for (int u = 0; u < kUnits; ++u) value[u] = LoadData<kWidth>(args.received + at + u * stride);
  }
  const bool received = args.from != nullptr || args.received != nullptr;
  const bool has_local = args.local != nullptr && !FansIn(args);
  Bits<kWidth> local[kUnits];
  if (has_local) {
    XCCL_UNROLL
    for (int u = 0; u < kUnits; ++u) local[u] = LoadData<kWidth>(args.local + at + u * stride);
  }
  if (has_local && received) {
    XCCL_UNROLL
    for (int u = 0; u < kUnits; ++u)
      value[u] = CombineBits<2, kWidth>(numbers, args.marks, local[u], value[u]);
  } else {
    const uint32_t marks = FansIn(args) ? args.marks & kFinish : args.marks;
    XCCL_UNROLL
    for (int u = 0; u < kUnits; ++u) {
      const Bits<kWidth> only = received ? value[u] : local[u];
      value[u] = CombineBits<1, kWidth>(numbers, marks, only, only);
    }
  }
}

template <int kWidth, int kUnits>
XCCL_DEVICE void GroupStore(const GroupMove& args, int64_t at, int64_t stride, const Bits<kWidth>* value) {
  if (args.stored != nullptr) {
    XCCL_UNROLL
    for (int u = 0; u < kUnits; ++u) StoreData<kWidth>(args.stored + at + u * stride, value[u]);
  }
  if (args.to != nullptr) {
    if constexpr (kWidth >= 4 && kHasSwitch) {
      if (args.to->multicast != nullptr) {
        XCCL_UNROLL
        for (int u = 0; u < kUnits; ++u)
          SwitchStore<kWidth>(args.to->multicast + args.to_at + at + u * stride, value[u]);
        return;
      }
    }
    for (int32_t m = 0; m < args.to->count; ++m) {
      char* const slots = args.to->members[m].slots + args.to_at + at;
      XCCL_UNROLL
      for (int u = 0; u < kUnits; ++u) StoreData<kWidth>(slots + u * stride, value[u]);
    }
  } else if (args.sent != nullptr) {
    XCCL_UNROLL
    for (int u = 0; u < kUnits; ++u) StoreData<kWidth>(args.sent + at + u * stride, value[u]);
  }
}

// kCopies: there is one source, and its values are not changed.
template <bool kCopies, int kWidth, int kUnits, class N>
XCCL_DEVICE void GroupUnits(const N& numbers, const GroupMove& args, int64_t at, int64_t stride) {
  Bits<kWidth> value[kUnits];
  if constexpr (kCopies) {
    const char* const source = args.local != nullptr ? args.local : args.received;
    XCCL_UNROLL
    for (int u = 0; u < kUnits; ++u) value[u] = LoadData<kWidth>(source + at + u * stride);
  } else {
    GroupValues<kWidth, kUnits>(numbers, args, at, stride, value);
  }
  GroupStore<kWidth, kUnits>(args, at, stride, value);
}

template <bool kCopies, int kWidth, class N>
XCCL_DEVICE void GroupRange(const N& numbers, const GroupMove& args, int64_t begin, int64_t units) {
  constexpr int kUnroll = kWidth == 16 ? 4 : 1;
  const int64_t stride = static_cast<int64_t>(args.threads) * kWidth, end = begin + units * kWidth;
  int64_t at = begin + static_cast<int64_t>(ThreadIndex()) * kWidth;
  if constexpr (kUnroll > 1)
    for (; at + (kUnroll - 1) * stride < end; at += kUnroll * stride)
      GroupUnits<kCopies, kWidth, kUnroll>(numbers, args, at, stride);
  for (; at < end; at += stride) GroupUnits<kCopies, kWidth, 1>(numbers, args, at, stride);
}

template <bool kCopies, int kWidth, class N>
XCCL_DEVICE void GroupAligned(const N& numbers, const GroupMove& args, uint64_t address) {
  constexpr int kElement = static_cast<int>(sizeof(typename N::Element));
  const int64_t head = static_cast<int64_t>(-address & (kWidth - 1));
  const int64_t first = head < args.bytes ? head : args.bytes;
  const int64_t units = (args.bytes - first) / kWidth;
  if constexpr (kWidth > kElement)
    if (first > 0) GroupRange<kCopies, kElement>(numbers, args, 0, first / kElement);
  GroupRange<kCopies, kWidth>(numbers, args, first, units);
  const int64_t last = first + units * kWidth;
  if constexpr (kWidth > kElement)
    if (last < args.bytes) GroupRange<kCopies, kElement>(numbers, args, last, (args.bytes - last) / kElement);
}

template <bool kCopies, int kMost, class N>
XCCL_DEVICE void GroupAny(const N& numbers, const GroupMove& args, uint64_t address, uint64_t differ) {
  constexpr int kElement = static_cast<int>(sizeof(typename N::Element));
  if (kMost == 16 && (differ & 15) == 0) {
    GroupAligned<kCopies, kMost>(numbers, args, address);
  } else if (kElement < 4 && (differ & 3) == 0) {
    GroupAligned < kCopies, kElement<4 ? 4 : kElement>(numbers, args, address);
  } else {
    GroupAligned<kCopies, kElement>(numbers, args, address);
  }
}

// Requires: as MoveRange; a group at one end or at both.
template <ElementNumbers N>
XCCL_DEVICE_CALL void MoveGroupRange(N numbers, const GroupMove args) {
  const uint64_t address = static_cast<uint64_t>(args.to != nullptr ? args.to_at : args.from_at);
  uint64_t differ = 0;
  if (args.from != nullptr) differ |= address ^ static_cast<uint64_t>(args.from_at);
  if (args.received != nullptr) differ |= address ^ BitCast<uint64_t>(args.received);
  if (args.local != nullptr) differ |= address ^ BitCast<uint64_t>(args.local);
  if (args.stored != nullptr) differ |= address ^ BitCast<uint64_t>(args.stored);
  if (args.sent != nullptr) differ |= address ^ BitCast<uint64_t>(args.sent);
  const bool changes = (numbers.scales() && (args.marks & kScaleFirst) != 0) ||
                       (numbers.finishes() && (args.marks & kFinish) != 0);
  if (args.from != nullptr || changes || (args.local != nullptr && args.received != nullptr)) {
    GroupAny<false, kGroupWidth<typename N::Element>>(numbers, args, address, differ);
  } else {
    GroupAny<true, 16>(numbers, args, address, differ);
  }
}

}  // namespace xccl::device
