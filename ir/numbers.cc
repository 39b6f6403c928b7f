// Small floating types are widened to float, which holds all their values exactly, and rounded back once,
// to nearest even. Rounding works on the bits: the kept part is incremented if the dropped part is above
// half, or is half and the kept part is odd. A carry out of the mantissa correctly increments the exponent.
#include "ir/numbers.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/strings.h"

namespace xccl {
namespace {

// By DataType.
constexpr std::array<std::string_view, 12> kTypeNames = {"int8",   "uint8",    "int32",  "uint32",
                                                         "int64",  "uint64",   "half",   "float",
                                                         "double", "bfloat16", "f8e4m3", "f8e5m2"};
constexpr std::array<std::string_view, 5> kOpNames = {"sum", "prod", "min", "max", "avg"};  // by ReduceOp

// All values of an enum that counts from 0.
template <typename Enum, size_t kCount>
constexpr auto kAll = [] {
  std::array<Enum, kCount> all{};
  for (size_t i = 0; i < kCount; ++i) all[i] = static_cast<Enum>(i);
  return all;
}();

// Drops the low `shift` bits of `bits`, rounding to nearest even. Requires: 0 < shift < 32.
uint32_t RoundShift(uint32_t bits, int shift) {
  const uint32_t half = 1u << (shift - 1);
  const uint32_t kept = bits >> shift;
  const uint32_t dropped = bits & ((1u << shift) - 1);
  return kept + (dropped > half || (dropped == half && (kept & 1) != 0) ? 1 : 0);
}

// Returns the bits of a finite float's magnitude in a format with `mantissa` bits and exponent bias `bias`.
// Overflow is not handled: a result that is too large runs into higher exponents.
uint32_t RoundMagnitude(uint32_t magnitude, int mantissa, int bias) {
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + bias;
  if (exponent > 0) {
    const uint32_t rebased = magnitude - (static_cast<uint32_t>(127 - bias) << 23);
    return RoundShift(rebased, 23 - mantissa);
  }
  // The result is subnormal in the format: the implied leading 1 becomes explicit and moves right.
  const int shift = 23 - mantissa + 1 - exponent;
  if (shift > 30 || magnitude < (1u << 23)) return 0;
  return RoundShift((magnitude & 0x7fffff) | 0x800000, shift);
}

// Returns the value of the magnitude bits of a floating-point format with `mantissa` bits of mantissa and
// exponent bias `bias`. Requires: not infinity or NaN.
float WidenMagnitude(uint32_t magnitude, int mantissa, int bias) {
  const uint32_t exponent = magnitude >> mantissa;
  const uint32_t fraction = magnitude & ((1u << mantissa) - 1);
  if (exponent == 0) return std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa);
  return std::bit_cast<float>((exponent + 127 - static_cast<uint32_t>(bias)) << 23 | fraction
                                                                                         << (23 - mantissa));
}

// A floating type narrower than float.
struct Format {
  int bits, mantissa, bias;
  uint32_t overflow_from;              // the bits of the least float that is too large
  uint32_t overflow_to, not_a_number;  // the format's bits for a float that is too large, and for NaN
};
constexpr Format kHalf = {16, 10, 15, 0x47800000, 0x7c00, 0x7e00};  // 2^16 and above
constexpr Format kE4m3 = {8, 3, 7, 0x43e00000, 0x7e, 0x7f};         // 448 and above, infinity too
constexpr Format kE5m2 = {8, 2, 15, 0x47600000, 0x7b, 0x7f};        // 57344 and above, infinity too

uint32_t ToFormat(const Format& format, float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  const uint32_t sign = bits >> 31 << (format.bits - 1);
  if (magnitude > 0x7f800000) return sign | format.not_a_number;
  if (magnitude >= format.overflow_from) return sign | format.overflow_to;
  return sign | RoundMagnitude(magnitude, format.mantissa, format.bias);
}

// `wide`: the bits of infinity or NaN in float, or 0 for other values.
float FromFormat(const Format& format, uint32_t bits, uint32_t wide) {
  const uint32_t sign = bits >> (format.bits - 1) << 31;
  const uint32_t magnitude = bits & ((1u << (format.bits - 1)) - 1);
  if (wide == 0) wide = std::bit_cast<uint32_t>(WidenMagnitude(magnitude, format.mantissa, format.bias));
  return std::bit_cast<float>(sign | wide);
}

template <DataType kType, typename Bits>
struct Small {
  Bits bits;
};
using Half = Small<DataType::kHalf, uint16_t>;
using Bfloat16 = Small<DataType::kBfloat16, uint16_t>;
using E4m3 = Small<DataType::kFp8E4m3, uint8_t>;
using E5m2 = Small<DataType::kFp8E5m2, uint8_t>;
// By DataType.
using Types = std::tuple<int8_t, uint8_t, int32_t, uint32_t, int64_t, uint64_t, Half, float, double, Bfloat16,
                         E4m3, E5m2>;

float Widen(float x) { return x; }
double Widen(double x) { return x; }
float Widen(Half x) { return HalfToFloat(x.bits); }
float Widen(Bfloat16 x) { return Bfloat16ToFloat(x.bits); }
float Widen(E4m3 x) { return E4m3ToFloat(x.bits); }
float Widen(E5m2 x) { return E5m2ToFloat(x.bits); }
void Round(float x, float& to) { to = x; }
void Round(double x, double& to) { to = x; }
void Round(float x, Half& to) { to.bits = FloatToHalf(x); }
void Round(float x, Bfloat16& to) { to.bits = FloatToBfloat16(x); }
void Round(float x, E4m3& to) { to.bits = FloatToE4m3(x); }
void Round(float x, E5m2& to) { to.bits = FloatToE5m2(x); }

template <typename T>
T CombineWide(ReduceOp op, T x, T y) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return x + y;
    case ReduceOp::kProd:
      return x * y;
    case ReduceOp::kMin:
      return std::isnan(x) ? x : std::isnan(y) || y < x ? y : x;
    case ReduceOp::kMax:
      return std::isnan(x) ? x : std::isnan(y) || x < y ? y : x;
  }
  return x;
}

template <typename T>
T Combine(ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    // Operands are 64 bits wide, since narrow ones would be promoted to a signed type that can overflow.
    const uint64_t x = static_cast<U>(a), y = static_cast<U>(b);
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        return static_cast<T>(static_cast<U>(x + y));
      case ReduceOp::kProd:
        return static_cast<T>(static_cast<U>(x * y));
      case ReduceOp::kMin:
        return b < a ? b : a;
      case ReduceOp::kMax:
        return a < b ? b : a;
    }
    return a;
  } else {
    T narrowed;
    Round(CombineWide(op, Widen(a), Widen(b)), narrowed);
    return narrowed;
  }
}

// Calls visit(T()) with the C++ type of a data type.
template <typename Visit>
void WithType(DataType type, Visit visit) {
  const auto try_each = [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    ((static_cast<size_t>(type) == kIndex ? visit(std::tuple_element_t<kIndex, Types>()) : void()), ...);
  };
  try_each(std::make_index_sequence<std::tuple_size_v<Types>>());
}

// Elements need not be aligned.
template <typename T>
T Load(const void* base, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <typename T>
void Store(void* base, int64_t i, T value) {
  std::memcpy(static_cast<std::byte*>(base) + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

std::string_view ToString(DataType type) { return kTypeNames[static_cast<size_t>(type)]; }
std::string_view ToString(ReduceOp op) { return kOpNames[static_cast<size_t>(op)]; }
std::span<const DataType> AllDataTypes() { return kAll<DataType, kTypeNames.size()>; }
std::span<const ReduceOp> AllReduceOps() { return kAll<ReduceOp, kOpNames.size()>; }
bool IsFloating(DataType type) { return type >= DataType::kHalf; }  // integers come first

int64_t SizeOf(DataType type) {
  int64_t size = 0;
  WithType(type, [&](auto zero) { size = sizeof(zero); });
  return size;
}

namespace {

// Another library's name for one of ours.
struct Alias {
  std::string_view theirs, ours;
};
constexpr Alias kTypeAliases[] = {{"bf16", "bfloat16"},  {"fp16", "half"},      {"float16", "half"},
                                  {"fp32", "float"},     {"float32", "float"},  {"fp64", "double"},
                                  {"float64", "double"}, {"f8_e4m3", "f8e4m3"}, {"fp8_e4m3", "f8e4m3"},
                                  {"f8_e5m2", "f8e5m2"}, {"fp8_e5m2", "f8e5m2"}};
constexpr Alias kOpAliases[] = {
    {"add", "sum"}, {"mul", "prod"}, {"product", "prod"}, {"mean", "avg"}, {"average", "avg"}};

StatusOr<size_t> IndexOfAlias(std::string_view what, std::string_view name, std::span<const Alias> aliases,
                              std::span<const std::string_view> known) {
  for (const Alias& alias : aliases)
    if (alias.theirs == name) name = alias.ours;
  return IndexOfName(what, name, known);
}

}  // namespace

StatusOr<DataType> ParseDataType(std::string_view name) {
  XCCL_ASSIGN_OR_RETURN(const size_t index, IndexOfAlias("data type", name, kTypeAliases, kTypeNames));
  return static_cast<DataType>(index);
}

StatusOr<ReduceOp> ParseReduceOp(std::string_view name) {
  XCCL_ASSIGN_OR_RETURN(const size_t index, IndexOfAlias("reduction", name, kOpAliases, kOpNames));
  return static_cast<ReduceOp>(index);
}

float HalfToFloat(uint16_t bits) {
  const bool wide = (bits & 0x7c00) == 0x7c00;  // infinity or NaN
  return FromFormat(kHalf, bits, wide ? 0x7f800000 | (bits & 0x3ff) << 13 : 0);
}
float E4m3ToFloat(uint8_t bits) { return FromFormat(kE4m3, bits, (bits & 0x7f) == 0x7f ? 0x7fc00000 : 0); }
float E5m2ToFloat(uint8_t bits) { return HalfToFloat(static_cast<uint16_t>(bits << 8)); }

uint16_t FloatToHalf(float value) {
  const uint32_t payload = std::isnan(value) ? std::bit_cast<uint32_t>(value) >> 13 & 0x3ff : 0;
  return static_cast<uint16_t>(ToFormat(kHalf, value) | payload);
}
uint8_t FloatToE4m3(float value) { return static_cast<uint8_t>(ToFormat(kE4m3, value)); }
uint8_t FloatToE5m2(float value) { return static_cast<uint8_t>(ToFormat(kE5m2, value)); }

float Bfloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t FloatToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>(RoundShift(bits, 16));
}

void ReduceReference(DataType type, ReduceOp op, void* dst, const void* local, const void* received,
                     int64_t count) {
  WithType(type, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < count; ++i)
      Store<T>(dst, i, Combine<T>(op, Load<T>(local, i), Load<T>(received, i)));
  });
}

void ReduceMembersReference(DataType type, ReduceOp op, void* dst, std::span<const void* const> members,
                            int64_t count) {
  WithType(type, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < count; ++i) {
      T result = Load<T>(members[0], i);
      if constexpr (std::is_integral_v<T>) {
        for (const void* member : members.subspan(1)) result = Combine<T>(op, result, Load<T>(member, i));
      } else {
        auto wide = Widen(result);
        for (const void* member : members.subspan(1)) wide = CombineWide(op, wide, Widen(Load<T>(member, i)));
        Round(wide, result);
      }
      Store<T>(dst, i, result);
    }
  });
}

void ScaleReference(DataType type, ReduceOp op, int32_t n, void* dst, const void* src, int64_t count) {
  WithType(type, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < count; ++i) {
      T value = Load<T>(src, i);
      if constexpr (!std::is_integral_v<T>) {
        if (op == ReduceOp::kAvg) {
          const auto wide = Widen(value);
          Round(wide / static_cast<decltype(wide)>(n), value);
        }
      }
      Store<T>(dst, i, value);
    }
  });
}

void FinishReference(DataType type, ReduceOp op, int32_t n, void* data, int64_t count) {
  if (op != ReduceOp::kAvg) return;
  WithType(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      // Converting n > 127 to int8 before dividing would be wrong.
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (std::is_signed_v<T>) {
          Store<T>(data, i, static_cast<T>(static_cast<int64_t>(Load<T>(data, i)) / n));
        } else {
          Store<T>(data, i,
                   static_cast<T>(static_cast<uint64_t>(Load<T>(data, i)) / static_cast<uint64_t>(n)));
        }
      }
    }
  });
}

}  // namespace xccl
