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
#include <type_traits>

#include "base/strings.h"

namespace xccl {
namespace {

struct TypeInfo {
  DataType type;
  std::string_view name;
  int64_t size;
  bool floating;
};
constexpr std::array<TypeInfo, 12> kTypes = {{{DataType::kInt8, "int8", 1, false},
                                              {DataType::kUint8, "uint8", 1, false},
                                              {DataType::kInt32, "int32", 4, false},
                                              {DataType::kUint32, "uint32", 4, false},
                                              {DataType::kInt64, "int64", 8, false},
                                              {DataType::kUint64, "uint64", 8, false},
                                              {DataType::kHalf, "half", 2, true},
                                              {DataType::kFloat, "float", 4, true},
                                              {DataType::kDouble, "double", 8, true},
                                              {DataType::kBfloat16, "bfloat16", 2, true},
                                              {DataType::kFp8E4m3, "f8e4m3", 1, true},
                                              {DataType::kFp8E5m2, "f8e5m2", 1, true}}};
constexpr auto kTypeList = [] {
  std::array<DataType, kTypes.size()> list{};
  for (size_t i = 0; i < kTypes.size(); ++i) list[i] = kTypes[i].type;
  return list;
}();
constexpr std::array<ReduceOp, 5> kOps = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax,
                                          ReduceOp::kAvg};

const TypeInfo& InfoOf(DataType type) { return kTypes[static_cast<size_t>(type)]; }

// Drops the low `shift` bits of `bits`, rounding to nearest even. Requires: 0 < shift < 32.
uint32_t RoundShift(uint32_t bits, int shift) {
  const uint32_t half = 1u << (shift - 1);
  const uint32_t kept = bits >> shift;
  const uint32_t dropped = bits & ((1u << shift) - 1);
  return kept + (dropped > half || (dropped == half && (kept & 1) != 0) ? 1 : 0);
}

// The magnitude bits of a finite float in a format with `mantissa` bits and exponent bias `bias`. Overflow
// is not handled: a result that is too large runs into higher exponents.
uint32_t RoundMagnitude(uint32_t magnitude, int mantissa, int bias) {
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + bias;
  if (exponent > 0) {
    const uint32_t rebased = magnitude - (static_cast<uint32_t>(127 - bias) << 23);
    return RoundShift(rebased, 23 - mantissa);
  }
  // The result is subnormal there: the implied one becomes explicit and moves right.
  const int shift = 23 - mantissa + 1 - exponent;
  if (shift > 30 || magnitude < (1u << 23)) return 0;
  return RoundShift((magnitude & 0x7fffff) | 0x800000, shift);
}

// The value of magnitude bits in such a format. Requires: not infinity or NaN.
float WidenMagnitude(uint32_t magnitude, int mantissa, int bias) {
  const uint32_t exponent = magnitude >> mantissa;
  const uint32_t fraction = magnitude & ((1u << mantissa) - 1);
  if (exponent == 0) return std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa);
  return std::bit_cast<float>((exponent + 127 - static_cast<uint32_t>(bias)) << 23 | fraction
                                                                                         << (23 - mantissa));
}

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

float Widen(float x) { return x; }
double Widen(double x) { return x; }
float Widen(Half x) { return HalfToFloat(x.bits); }
float Widen(Bfloat16 x) { return Bfloat16ToFloat(x.bits); }
float Widen(E4m3 x) { return E4m3ToFloat(x.bits); }
float Widen(E5m2 x) { return E5m2ToFloat(x.bits); }
void Narrow(float x, float& to) { to = x; }
void Narrow(double x, double& to) { to = x; }
void Narrow(float x, Half& to) { to.bits = FloatToHalf(x); }
void Narrow(float x, Bfloat16& to) { to.bits = FloatToBfloat16(x); }
void Narrow(float x, E4m3& to) { to.bits = FloatToE4m3(x); }
void Narrow(float x, E5m2& to) { to.bits = FloatToE5m2(x); }

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
    Narrow(CombineWide(op, Widen(a), Widen(b)), narrowed);
    return narrowed;
  }
}

// Calls visit(T()) with the C++ type of a data type.
template <typename Visit>
void WithType(DataType type, Visit visit) {
  switch (type) {
    case DataType::kInt8:
      return visit(int8_t());
    case DataType::kUint8:
      return visit(uint8_t());
    case DataType::kInt32:
      return visit(int32_t());
    case DataType::kUint32:
      return visit(uint32_t());
    case DataType::kInt64:
      return visit(int64_t());
    case DataType::kUint64:
      return visit(uint64_t());
    case DataType::kHalf:
      return visit(Half());
    case DataType::kFloat:
      return visit(float());
    case DataType::kDouble:
      return visit(double());
    case DataType::kBfloat16:
      return visit(Bfloat16());
    case DataType::kFp8E4m3:
      return visit(E4m3());
    case DataType::kFp8E5m2:
      return visit(E5m2());
  }
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

std::string_view ToString(DataType type) { return InfoOf(type).name; }
int64_t SizeOf(DataType type) { return InfoOf(type).size; }
bool IsFloating(DataType type) { return InfoOf(type).floating; }
std::span<const DataType> AllDataTypes() { return kTypeList; }
std::span<const ReduceOp> AllReduceOps() { return kOps; }

std::string_view ToString(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kProd:
      return "prod";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kAvg:
      return "avg";
  }
  return "";
}

StatusOr<DataType> ParseDataType(std::string_view name) {
  std::vector<std::string_view> known;
  for (const TypeInfo& info : kTypes) {
    if (info.name == name) return info.type;
    known.push_back(info.name);
  }
  return InvalidInput(fmt::format("no data type '{}'{}", name, DidYouMean(name, known)));
}

StatusOr<ReduceOp> ParseReduceOp(std::string_view name) {
  std::vector<std::string_view> known;
  for (ReduceOp op : kOps) {
    if (ToString(op) == name) return op;
    known.push_back(ToString(op));
  }
  return InvalidInput(fmt::format("no reduction '{}'{}", name, DidYouMean(name, known)));
}

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00)
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);  // infinity or NaN
  return std::bit_cast<float>(std::bit_cast<uint32_t>(WidenMagnitude(magnitude, 10, 15)) | sign);
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  const uint32_t sign = bits >> 16 & 0x8000;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);  // 2^16 and above
  return static_cast<uint16_t>(sign | RoundMagnitude(magnitude, 10, 15));
}

float Bfloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t FloatToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>(RoundShift(bits, 16));
}

float E4m3ToFloat(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24, magnitude = bits & 0x7f;
  if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(WidenMagnitude(magnitude, 3, 7)) | sign);
}

uint8_t FloatToE4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  const uint32_t sign = bits >> 24 & 0x80;
  if (magnitude > 0x7f800000) return static_cast<uint8_t>(sign | 0x7f);
  if (magnitude >= 0x43e00000) return static_cast<uint8_t>(sign | 0x7e);  // 448 and above, infinity too
  return static_cast<uint8_t>(sign | RoundMagnitude(magnitude, 3, 7));
}

float E5m2ToFloat(uint8_t bits) { return HalfToFloat(static_cast<uint16_t>(bits << 8)); }

uint8_t FloatToE5m2(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  const uint32_t sign = bits >> 24 & 0x80;
  if (magnitude > 0x7f800000) return static_cast<uint8_t>(sign | 0x7f);
  if (magnitude >= 0x47600000) return static_cast<uint8_t>(sign | 0x7b);  // 57344 and above, infinity too
  return static_cast<uint8_t>(sign | RoundMagnitude(magnitude, 2, 15));
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
        Narrow(wide, result);
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
          Narrow(wide / static_cast<decltype(wide)>(n), value);
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
