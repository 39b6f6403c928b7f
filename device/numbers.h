// Element types, operators and their arithmetic on a GPU and on the host, bit for bit as ir/numbers.h
// defines them, except NaN payloads, which a processor chooses. Small floating types go through float and
// are rounded once to nearest even; fp8 saturates. NaN wins in min and max; integers wrap. Conversions use
// hardware instructions that do exactly this.
#pragma once

#include "device/platform.h"

namespace xccl::device {

struct Half {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};
struct E4m3 {
  uint8_t bits;
};
struct E5m2 {
  uint8_t bits;
};

template <class T>
inline constexpr bool kIsInteger = requires(T x) {
  x % x;
};

// Rounds the low `shift` bits away, to nearest even. Requires: 0 < shift < 32.
XCCL_DEVICE uint32_t RoundShift(uint32_t bits, int shift) {
  const uint32_t kept = bits >> shift, dropped = bits & ((1u << shift) - 1), half = 1u << (shift - 1);
  return kept + ((dropped > half || (dropped == half && (kept & 1) != 0)) ? 1 : 0);
}
// The magnitude bits of a finite float in a format with `mantissa` bits and exponent bias `bias`. A result
// that is too large runs into higher exponents.
XCCL_DEVICE uint32_t Shrink(uint32_t magnitude, int mantissa, int bias) {
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + bias;
  if (exponent > 0) return RoundShift(magnitude - (static_cast<uint32_t>(127 - bias) << 23), 23 - mantissa);
  const int shift = 24 - mantissa - exponent;
  return shift > 30 || magnitude < (1u << 23) ? 0 : RoundShift((magnitude & 0x7fffff) | 0x800000, shift);
}
XCCL_DEVICE float Grow(uint32_t magnitude, int mantissa, int bias) {
  const uint32_t exponent = magnitude >> mantissa, fraction = magnitude & ((1u << mantissa) - 1);
  // A subnormal is its fraction times a power of two, both exact in float.
  if (exponent == 0)
    return static_cast<float>(fraction) * BitCast<float>(static_cast<uint32_t>(128 - bias - mantissa) << 23);
  return BitCast<float>((exponent + 127 - static_cast<uint32_t>(bias)) << 23 | fraction << (23 - mantissa));
}

// The value in the type in which it is combined, and back.
template <class T>
requires(kIsInteger<T>) XCCL_DEVICE T Widen(T x) { return x; }
XCCL_DEVICE float Widen(float x) { return x; }
XCCL_DEVICE double Widen(double x) { return x; }
XCCL_DEVICE float Widen(Half x) {
#ifdef __CUDACC__
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
#else
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000) << 16, magnitude = x.bits & 0x7fff;
  if (magnitude >= 0x7c00) return BitCast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  return BitCast<float>(BitCast<uint32_t>(Grow(magnitude, 10, 15)) | sign);
#endif
}
XCCL_DEVICE float Widen(Bfloat16 x) { return BitCast<float>(static_cast<uint32_t>(x.bits) << 16); }
XCCL_DEVICE float Widen(E4m3 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  // Every value of the type is one of half.
  uint32_t pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<uint16_t>(x.bits)));
  return Widen(Half{static_cast<uint16_t>(pair)});
#else
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x80) << 24, magnitude = x.bits & 0x7f;
  if (magnitude == 0x7f) return BitCast<float>(sign | 0x7fc00000);
  return BitCast<float>(BitCast<uint32_t>(Grow(magnitude, 3, 7)) | sign);
#endif
}
XCCL_DEVICE float Widen(E5m2 x) { return Widen(Half{static_cast<uint16_t>(x.bits << 8)}); }

template <class T>
requires(kIsInteger<T>) XCCL_DEVICE void Narrow(T x, T& to) { to = x; }
XCCL_DEVICE void Narrow(float x, float& to) { to = x; }
XCCL_DEVICE void Narrow(double x, double& to) { to = x; }
XCCL_DEVICE void Narrow(float x, Half& to) {
#ifdef __CUDACC__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
#else
  const uint32_t bits = BitCast<uint32_t>(x), magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  to.bits = static_cast<uint16_t>(magnitude > 0x7f800000    ? sign | 0x7e00 | (magnitude >> 13 & 0x3ff)
                                  : magnitude >= 0x47800000 ? sign | 0x7c00
                                                            : sign | Shrink(magnitude, 10, 15));
#endif
}
XCCL_DEVICE void Narrow(float x, Bfloat16& to) {
#ifdef __CUDACC__
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
#else
  // A form that compilers vectorise.
  const uint32_t bits = BitCast<uint32_t>(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  to.bits = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
#endif
}
XCCL_DEVICE void Narrow(float x, E4m3& to) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  to.bits = static_cast<uint8_t>(pair);
#else
  const uint32_t bits = BitCast<uint32_t>(x), magnitude = bits & 0x7fffffff, sign = bits >> 24 & 0x80;
  to.bits = static_cast<uint8_t>(magnitude > 0x7f800000    ? sign | 0x7f
                                 : magnitude >= 0x43e00000 ? sign | 0x7e  // 448 and above
                                                           : sign | Shrink(magnitude, 3, 7));
#endif
}
XCCL_DEVICE void Narrow(float x, E5m2& to) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16_t pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  to.bits = static_cast<uint8_t>(pair);
#else
  const uint32_t bits = BitCast<uint32_t>(x), magnitude = bits & 0x7fffffff, sign = bits >> 24 & 0x80;
  to.bits = static_cast<uint8_t>(magnitude > 0x7f800000    ? sign | 0x7f
                                 : magnitude >= 0x47600000 ? sign | 0x7b  // 57344 and above
                                                           : sign | Shrink(magnitude, 2, 15));
#endif
}

template <class T>
using Wide = decltype(Widen(T()));

// a op b; avg adds.
template <class T>
XCCL_DEVICE T Combine(Operator op, T a, T b) {
  if constexpr (kIsInteger<T>) {
    if (op == Operator::kMin) return b < a ? b : a;
    if (op == Operator::kMax) return a < b ? b : a;
    // 64 bits wide and unsigned, so that nothing overflows before it wraps. Bits above T's are dropped again.
    // NOLINTNEXTLINE(bugprone-signed-char-misuse)
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(op == Operator::kProd ? x * y : x + y);
  } else {
    const auto x = Widen(a), y = Widen(b);
    auto result = x;
    if (op == Operator::kMin) {
      result = x != x ? x : y != y || y < x ? y : x;
    } else if (op == Operator::kMax) {
      result = x != x ? x : y != y || x < y ? y : x;
    } else {
      result = op == Operator::kProd ? x * y : x + y;
    }
    T narrow;
    Narrow(result, narrow);
    return narrow;
  }
}
// x ÷ y, rounded once. A call, since a GPU's division is long and avg has one for every element.
template <class T>
XCCL_DEVICE_CALL T Quotient(T x, T y) {
  return x / y;
}
// 1 ÷ n, exactly. Requires: n is a power of two, as its value in T.
XCCL_DEVICE float InverseOfPower(float n) { return BitCast<float>((254u << 23) - BitCast<uint32_t>(n)); }
XCCL_DEVICE double InverseOfPower(double n) {
  return BitCast<double>((uint64_t{2046} << 52) - BitCast<uint64_t>(n));
}
// Scales a floating contribution of an avg over n when it is first read; other types are unchanged.
template <class T>
XCCL_DEVICE T Scaled(T value, int32_t n) {
  if constexpr (!kIsInteger<T>) {
    const auto wide = Widen(value), members = static_cast<decltype(wide)>(n);
    // Both round the same exact value.
    Narrow((n & (n - 1)) == 0 ? wide * InverseOfPower(members) : Quotient(wide, members), value);
  }
  return value;
}
// Divides the complete sum of an integer avg by n; other types are unchanged.
template <class T>
XCCL_DEVICE T Finished(T value, int32_t n) {
  if constexpr (kIsInteger<T>) {
    if constexpr (T(-1) < T(0)) return static_cast<T>(static_cast<int64_t>(value) / n);
    return static_cast<T>(static_cast<uint64_t>(value) / static_cast<uint64_t>(n));
  }
  return value;
}

// The type and operator of a kernel. On a GPU both are fixed at compile time; on the host the operator is a
// value, so that one compilation serves all.
template <class T, Operator kOp>
struct Numbers {
  using Element = T;
  static constexpr bool kScales = kOp == Operator::kAvg && !kIsInteger<T>;
  static constexpr bool kFinishes = kOp == Operator::kAvg && kIsInteger<T>;
  int32_t members = 1;
  XCCL_DEVICE static constexpr int64_t bytes() { return static_cast<int64_t>(sizeof(T)); }
  XCCL_DEVICE static constexpr Operator op() { return kOp; }
  XCCL_DEVICE static constexpr bool scales() { return kScales; }
  XCCL_DEVICE static constexpr bool finishes() { return kFinishes; }
};
template <class T>
struct AnyOperator {
  using Element = T;
  static constexpr bool kScales = !kIsInteger<T>;
  static constexpr bool kFinishes = kIsInteger<T>;
  int32_t members = 1;
  Operator the_op = Operator::kSum;
  XCCL_DEVICE static constexpr int64_t bytes() { return static_cast<int64_t>(sizeof(T)); }
  XCCL_DEVICE Operator op() const { return the_op; }
  XCCL_DEVICE bool scales() const { return kScales && the_op == Operator::kAvg; }
  XCCL_DEVICE bool finishes() const { return kFinishes && the_op == Operator::kAvg; }
};

// Numbers with one element type. The host also has numbers whose type is a run-time value (device/host.h).
template <class N>
concept ElementNumbers = requires {
  typename N::Element;
};

// The element types, in the order of Type.
template <class... Ts>
struct TypeList {};
using ElementTypes = TypeList<int8_t, uint8_t, int32_t, uint32_t, int64_t, uint64_t, Half, float, double,
                              Bfloat16, E4m3, E5m2>;
template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;
// The Type of an element type.
template <class T, class... Ts>
XCCL_DEVICE constexpr Type TypeIn(TypeList<Ts...>) {
  int32_t place = 0;
  static_cast<void>(((kSame<T, Ts> || (++place, false)) || ...));
  return static_cast<Type>(place);
}
template <class T>
inline constexpr Type kTypeOf = TypeIn<T>(ElementTypes());

#ifndef __CUDACC__
// Calls visit(T()) with the element type T of `type`.
template <class Visit, class T, class... Ts>
auto WithType(Type type, const Visit& visit, TypeList<T, Ts...>) {
  if constexpr (sizeof...(Ts) == 0) {
    return visit(T());
  } else {
    return type == kTypeOf<T> ? visit(T()) : WithType(type, visit, TypeList<Ts...>());
  }
}
template <class Visit>
auto WithType(Type type, const Visit& visit) {
  return WithType(type, visit, ElementTypes());
}
#endif

// Changes of a value on its way: bits of `marks`.
inline constexpr uint32_t kScaleFirst = 1, kScaleSecond = 2, kFinish = 4;

// Combines kWidth bytes of elements. `b` is used only with two sources.
template <int kSources, int kWidth, class N>
XCCL_DEVICE Bits<kWidth> CombineBits(const N& numbers, uint32_t marks, const Bits<kWidth>& a,
                                     const Bits<kWidth>& b) {
  using T = typename N::Element;
  if constexpr (kSources == 1 && !N::kScales && !N::kFinishes) {
    return a;
  } else {
    struct Elements {
      T of[kWidth / sizeof(T)];
    };
    Elements x = BitCast<Elements>(a);
    [[maybe_unused]] const Elements y = BitCast<Elements>(b);
    XCCL_UNROLL
    for (int i = 0; i < static_cast<int>(kWidth / sizeof(T)); ++i) {
      T value = x.of[i];
      if constexpr (N::kScales)
        if (numbers.scales() && (marks & kScaleFirst) != 0) value = Scaled(value, numbers.members);
      if constexpr (kSources == 2) {
        T other = y.of[i];
        if constexpr (N::kScales)
          if (numbers.scales() && (marks & kScaleSecond) != 0) other = Scaled(other, numbers.members);
        value = Combine(numbers.op(), value, other);
      }
      if constexpr (N::kFinishes)
        if (numbers.finishes() && (marks & kFinish) != 0) value = Finished(value, numbers.members);
      x.of[i] = value;
    }
    return BitCast<Bits<kWidth>>(x);
  }
}

}  // namespace xccl::device
