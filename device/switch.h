// A switch that stores to the same place of several ranks' memory, and loads the reduction of what they have
// there: one multimem.st or multimem.ld_reduce a unit. It works on the slots of a group (device/group.h) and,
// where all ranks have registered their buffers, on the buffers: then no slot takes part. docs/kernels.md,
// section 5.
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

// True if a switch may perform the reduction in the ranks' own buffers, too. An average is then scaled after
// the sum, and the sum could exceed half's range.
template <class N>
XCCL_DEVICE constexpr bool SwitchReducesBuffers(const N& numbers) {
  return SwitchReduces(numbers) && !(kTypeOf<typename N::Element> == Type::kHalf && numbers.scales());
}

// Eight bytes of the element that changes no value it is reduced with. For floats it is 0: a sum of nothing
// but -0 is then 0, and memory that is zero at first serves every sum.
template <class N>
XCCL_DEVICE uint64_t NeutralBits(const N& numbers) {
  using T = typename N::Element;
  if constexpr (!kIsInteger<T> || sizeof(T) < 4) {
    return 0;
  } else {
    if (numbers.op() != Operator::kMin && numbers.op() != Operator::kMax) return 0;
    constexpr bool kSigned = T(-1) < T(0);
    constexpr uint64_t kHighest = ~uint64_t{0} >> (64 - 8 * sizeof(T) + (kSigned ? 1 : 0));
    constexpr uint64_t kOfAll = sizeof(T) == 4 ? uint64_t{0x100000001} : 1;
    const uint64_t bits = kOfAll * kHighest;
    return numbers.op() == Operator::kMin ? bits : ~bits;
  }
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

// A unit at any address that elements may have.
template <class T, int kWidth>
XCCL_DEVICE Bits<kWidth> LoadUnit(const char* at) {
  if constexpr (kWidth == 4 && sizeof(T) < 4) {
    if ((BitCast<uint64_t>(at) & 3) != 0) {
      Bits<4> unit = {};
      XCCL_UNROLL
      for (int i = 0; i < 4; i += static_cast<int>(sizeof(T)))
        unit.word |= static_cast<uint32_t>(LoadData<sizeof(T)>(at + i).word) << (8 * i);
      return unit;
    }
  }
  return LoadData<kWidth>(at);
}
template <class T, int kWidth>
XCCL_DEVICE void StoreUnit(char* at, const Bits<kWidth>& unit) {
  if constexpr (kWidth == 4 && sizeof(T) < 4) {
    if ((BitCast<uint64_t>(at) & 3) != 0) {
      XCCL_UNROLL
      for (int i = 0; i < 4; i += static_cast<int>(sizeof(T))) {
        Bits<sizeof(T)> element;
        element.word = static_cast<decltype(element.word)>(unit.word >> (8 * i));
        StoreData<sizeof(T)>(at + i, element);
      }
      return;
    }
  }
  StoreData<kWidth>(at, unit);
}

// One slice. With kPulled the switch reduces what all members have at `from`; it stores to `to`. Without
// kPulled `from` is this rank's memory or a message, as `also` always is.
struct SwitchMove {
  const char* from = nullptr;
  char* to = nullptr;    // a multicast address, or null
  char* also = nullptr;  // or null
  int64_t bytes = 0;     // a multiple of 4, as are `to` and, with kPulled, `from`
  uint32_t marks = 0;    // kScaleFirst, kFinish, kPulled
  int32_t threads = 1;   // the first threads of the block, which share the work
};
// A bit of `marks`, beside the bits of numbers.h.
inline constexpr uint32_t kPulled = 16;

template <int kWidth, int kUnits, class N>
XCCL_DEVICE void SwitchUnits(const N& numbers, const SwitchMove& args, int64_t at, int64_t stride) {
  using T = typename N::Element;
  Bits<kWidth> value[kUnits];
  if ((args.marks & kPulled) == 0) {
    XCCL_UNROLL
    for (int u = 0; u < kUnits; ++u) value[u] = LoadUnit<T, kWidth>(args.from + at + u * stride);
  } else if constexpr (kSwitchType<T>) {
    XCCL_UNROLL
    for (int u = 0; u < kUnits; ++u)
      value[u] = SwitchLoad<kWidth, T>(numbers.op(), args.from + at + u * stride);
  }
  XCCL_UNROLL
  for (int u = 0; u < kUnits; ++u) value[u] = CombineBits<1, kWidth>(numbers, args.marks, value[u], value[u]);
  if (args.to != nullptr) {
    XCCL_UNROLL
    for (int u = 0; u < kUnits; ++u) SwitchStore<kWidth>(args.to + at + u * stride, value[u]);
  }
  if (args.also != nullptr) {
    XCCL_UNROLL
    for (int u = 0; u < kUnits; ++u) StoreUnit<T, kWidth>(args.also + at + u * stride, value[u]);
  }
}

template <int kWidth, class N>
XCCL_DEVICE void SwitchRange(const N& numbers, const SwitchMove& args, int64_t begin, int64_t units) {
  constexpr int kUnroll = kWidth == 16 ? 4 : 1;
  const int64_t stride = static_cast<int64_t>(args.threads) * kWidth, end = begin + units * kWidth;
  int64_t at = begin + static_cast<int64_t>(ThreadIndex()) * kWidth;
  if constexpr (kUnroll > 1)
    for (; at + (kUnroll - 1) * stride < end; at += kUnroll * stride)
      SwitchUnits<kWidth, kUnroll>(numbers, args, at, stride);
  for (; at < end; at += stride) SwitchUnits<kWidth, 1>(numbers, args, at, stride);
}

template <ElementNumbers N>
XCCL_DEVICE_CALL void MoveSwitchRange(N numbers, const SwitchMove args) {
  if constexpr (kHasSwitch) {
    constexpr int kElement = static_cast<int>(sizeof(typename N::Element)),
                  kEdge = kElement < 4 ? 4 : kElement;
    const uint64_t address = BitCast<uint64_t>(args.from);
    uint64_t differ = 0;
    if (args.to != nullptr) differ |= address ^ BitCast<uint64_t>(args.to);
    if (args.also != nullptr) differ |= address ^ BitCast<uint64_t>(args.also);
    const int64_t head = static_cast<int64_t>(-address & 15);
    if ((differ & 15) != 0 || head % kEdge != 0 || head >= args.bytes) {
      SwitchRange<kEdge>(numbers, args, 0, args.bytes / kEdge);
      return;
    }
    if (head > 0) SwitchRange<kEdge>(numbers, args, 0, head / kEdge);
    const int64_t units = (args.bytes - head) / 16, last = head + units * 16;
    SwitchRange<16>(numbers, args, head, units);
    if (last < args.bytes) SwitchRange<kEdge>(numbers, args, last, (args.bytes - last) / kEdge);
  }
}

// Fills `bytes` (a multiple of 16) of a root's own slots with the neutral element, before the switch reads
// them.
XCCL_DEVICE_CALL void FillNeutral(uint64_t bits, char* slots, int64_t bytes) {
  Bits<16> unit;
  XCCL_UNROLL
  for (int i = 0; i < 4; ++i) unit.word[i] = static_cast<uint32_t>(bits >> (i % 2 * 32));
  for (int64_t at = static_cast<int64_t>(ThreadIndex()) * 16; at < bytes;
       at += static_cast<int64_t>(Threads()) * 16)
    StoreData<16>(slots + at, unit);
  FenceSystem();
}

}  // namespace xccl::device
