// Moves elements where a multicast or reduce group takes the place of a slot. A received value is the
// reduction of the members' messages, by the switch or by this rank; a sent value is stored at all members.
// There are two methods, chosen by whether the group has a multicast address:
//   switch    one multimem.ld_reduce or multimem.st per unit. Needs sm_90 and units of 4 bytes or more;
//             a reduction also needs a type and operator that the instruction supports with this
//             library's meaning.
//   by hand   reads every member's slot in ascending order and reduces in float if the type is narrower,
//             rounding once (ReduceMembersReference of ir/numbers.h); stores to every member's slot.
// Elements before and after the whole units of a slice always go by hand. docs/kernels.md, section 5.
#pragma once

#include "device/move.h"

namespace xccl::device {

// Types that multimem.ld_reduce supports. It has no 8-bit integers, and fp8 needs sm_100a.
template <class T>
inline constexpr bool kSwitchType = sizeof(T) >= 4;
template <>
inline constexpr bool kSwitchType<Half> = true;
template <>
inline constexpr bool kSwitchType<Bfloat16> = true;

// True if a switch performs this reduction. It has no product, and no minimum of float and double. It has
// one of half and bfloat16, but PTX does not guarantee that NaN wins.
template <class N>
XCCL_DEVICE constexpr bool SwitchReduces(const N& numbers) {
  using T = typename N::Element;
  if constexpr (!kSwitchType<T> || !kHasSwitch) {
    return false;
  } else {
    const Operator op = numbers.op();
    return op == Operator::kSum || op == Operator::kAvg ||
           (kIsInteger<T> && (op == Operator::kMin || op == Operator::kMax));
  }
}

// An element that changes no value it is reduced with. For floats it is -0, since adding 0 would turn -0
// into 0.
template <class T>
XCCL_DEVICE T Neutral(Operator op) {
  if constexpr (kIsInteger<T>) {
    constexpr bool kSigned = T(-1) < T(0);
    constexpr T kHighest = static_cast<T>(~uint64_t{0} >> (64 - 8 * sizeof(T) + (kSigned ? 1 : 0)));
    if (op == Operator::kMin) return kHighest;
    if (op == Operator::kMax) return static_cast<T>(~kHighest);
    return T(0);
  } else {
    T zero;
    Narrow(static_cast<Wide<T>>(-0.0), zero);
    return zero;
  }
}
// The value of GroupConnection::holds for slots that hold the neutral element.
template <class N>
XCCL_DEVICE uint64_t NeutralKey(const N& numbers) {
  return 1 + (static_cast<uint64_t>(kTypeOf<typename N::Element>) << 8 | static_cast<uint64_t>(numbers.op()));
}

#ifdef __CUDACC__
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
template <class T>
XCCL_DEVICE uint32_t SwitchLoad4(Operator op, uint64_t at) {
  uint32_t v = 0;
  if constexpr (kIsInteger<T>) {
    constexpr bool kSigned = T(-1) < T(0);
    if (op == Operator::kMin && kSigned) {
      asm volatile("multimem.ld_reduce.relaxed.sys.global.min.s32 %0, [%1];" : "=r"(v) : "l"(at));
    } else if (op == Operator::kMin) {
      asm volatile("multimem.ld_reduce.relaxed.sys.global.min.u32 %0, [%1];" : "=r"(v) : "l"(at));
    } else if (op == Operator::kMax && kSigned) {
      asm volatile("multimem.ld_reduce.relaxed.sys.global.max.s32 %0, [%1];" : "=r"(v) : "l"(at));
    } else if (op == Operator::kMax) {
      asm volatile("multimem.ld_reduce.relaxed.sys.global.max.u32 %0, [%1];" : "=r"(v) : "l"(at));
    } else {
      asm volatile("multimem.ld_reduce.relaxed.sys.global.add.u32 %0, [%1];" : "=r"(v) : "l"(at));
    }
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=r"(v) : "l"(at));
  } else if constexpr (kTypeOf<T> == Type::kHalf) {
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.f16x2 %0, [%1];" : "=r"(v) : "l"(at));
  } else {
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.bf16x2 %0, [%1];" : "=r"(v) : "l"(at));
  }
  return v;
}
template <class T>
XCCL_DEVICE uint64_t SwitchLoad8(Operator op, uint64_t at) {
  uint64_t v = 0;
  if constexpr (kIsInteger<T>) {
    constexpr bool kSigned = T(-1) < T(0);
    if (op == Operator::kMin && kSigned) {
      asm volatile("multimem.ld_reduce.relaxed.sys.global.min.s64 %0, [%1];" : "=l"(v) : "l"(at));
    } else if (op == Operator::kMin) {
      asm volatile("multimem.ld_reduce.relaxed.sys.global.min.u64 %0, [%1];" : "=l"(v) : "l"(at));
    } else if (op == Operator::kMax && kSigned) {
      asm volatile("multimem.ld_reduce.relaxed.sys.global.max.s64 %0, [%1];" : "=l"(v) : "l"(at));
    } else if (op == Operator::kMax) {
      asm volatile("multimem.ld_reduce.relaxed.sys.global.max.u64 %0, [%1];" : "=l"(v) : "l"(at));
    } else {
      asm volatile("multimem.ld_reduce.relaxed.sys.global.add.u64 %0, [%1];" : "=l"(v) : "l"(at));
    }
  } else {
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f64 %0, [%1];" : "=l"(v) : "l"(at));
  }
  return v;
}

// The reduction of all copies of the unit at a multicast address. Requires: SwitchReduces.
template <int kWidth, class T>
XCCL_DEVICE Bits<kWidth> SwitchLoad(Operator op, const char* from) {
  const uint64_t at = Global(from);
  Bits<kWidth> v;
  if constexpr (kWidth == 4) {
    v.word = SwitchLoad4<T>(op, at);
  } else if constexpr (sizeof(T) == 8) {
    XCCL_UNROLL
    for (int i = 0; i < kWidth / 8; ++i) {
      const uint64_t part = SwitchLoad8<T>(op, at + 8 * i);
      v.word[2 * i] = static_cast<uint32_t>(part);
      v.word[2 * i + 1] = static_cast<uint32_t>(part >> 32);
    }
  } else if constexpr (kIsInteger<T>) {
    XCCL_UNROLL
    for (int i = 0; i < kWidth / 4; ++i) v.word[i] = SwitchLoad4<T>(op, at + 4 * i);
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
                 : "l"(at));
  } else if constexpr (kTypeOf<T> == Type::kHalf) {
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
                 : "l"(at));
  } else {
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
                 : "l"(at));
  }
  return v;
}
#else
template <int kWidth, class T>
XCCL_DEVICE Bits<kWidth> SwitchLoad(Operator, const char*) {
  return {};
}
#endif
#endif

// Reduces units of several sources, one source after the other.
template <class T, int kWidth, int kUnits>
struct Reduction {
  static constexpr int kElements = kWidth / static_cast<int>(sizeof(T));
  struct Elements {
    T of[kElements];
  };
  Wide<T> value[kUnits][kElements];

  XCCL_DEVICE void Set(int u, const Bits<kWidth>& bits) {
    const Elements x = BitCast<Elements>(bits);
    XCCL_UNROLL
    for (int i = 0; i < kElements; ++i) value[u][i] = Widen(x.of[i]);
  }
  XCCL_DEVICE void Add(Operator op, int u, const Bits<kWidth>& bits) {
    const Elements x = BitCast<Elements>(bits);
    XCCL_UNROLL
    for (int i = 0; i < kElements; ++i) value[u][i] = Combine(op, value[u][i], Widen(x.of[i]));
  }
  XCCL_DEVICE Bits<kWidth> Get(int u) const {
    Elements x;
    XCCL_UNROLL
    for (int i = 0; i < kElements; ++i) Narrow(value[u][i], x.of[i]);
    return BitCast<Bits<kWidth>>(x);
  }
};

#ifndef __CUDACC__
template <int kWidth, class T>
Bits<kWidth> SwitchLoad(Operator op, const char* from) {
  HostTouch(from, kWidth);
  char* copies[kMostHostCopies];
  const int32_t count = host_switch(from, copies);
  Reduction<T, kWidth, 1> sum;
  sum.Set(0, CopyOf<kWidth>(copies[0]));
  for (int32_t i = 1; i < count; ++i) sum.Add(op, 0, CopyOf<kWidth>(copies[i]));
  return sum.Get(0);
}
#endif

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
  int32_t threads = 1;                  // that share the work: the block's first ones
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
    // As others would receive it: scaled, and rounded.
    if (o == own) value[u] = CombineBits<1, kWidth>(numbers, args.marks & kScaleFirst, value[u], value[u]);
  }
}
// Reduces kUnits units of every member, from offset `at` of the slice on; in a fan-in those of the local
// value too, in its place.
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

// Fills `bytes` (a multiple of 16) of a root's own slots with the neutral element, before the switch reads
// them.
template <ElementNumbers N>
XCCL_DEVICE_CALL void FillNeutral(N numbers, char* slots, int64_t bytes) {
  using T = typename N::Element;
  struct Elements {
    T of[16 / sizeof(T)];
  };
  Elements unit;
  XCCL_UNROLL
  for (int i = 0; i < static_cast<int>(16 / sizeof(T)); ++i) unit.of[i] = Neutral<T>(numbers.op());
  for (int64_t at = static_cast<int64_t>(ThreadIndex()) * 16; at < bytes;
       at += static_cast<int64_t>(Threads()) * 16)
    StoreData<16>(slots + at, BitCast<Bits<16>>(unit));
  FenceSystem();
}

}  // namespace xccl::device
