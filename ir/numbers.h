// The element types and operators of every runtime, and their definition (docs/ir.md, Numbers): result =
// round_T(float(local) op float(received)). half, bfloat16 and fp8 go through float and round to nearest
// even; fp8 saturates. NaN propagates in min and max; integers wrap. avg scales a floating contribution by
// 1/n when it is first read, and divides an integer once at the end, toward zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace xccl {

enum class DataType : uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kHalf,
  kFloat,
  kDouble,
  kBfloat16,
  kFp8E4m3,
  kFp8E5m2,
};
enum class ReduceOp : uint8_t { kSum, kProd, kMin, kMax, kAvg };

std::string_view ToString(DataType type);  // nccl-tests' names: "float", "bfloat16", "f8e4m3"
std::string_view ToString(ReduceOp op);    // "sum"
StatusOr<DataType> ParseDataType(std::string_view name);
StatusOr<ReduceOp> ParseReduceOp(std::string_view name);
std::span<const DataType> AllDataTypes();
std::span<const ReduceOp> AllReduceOps();
int64_t SizeOf(DataType type);
bool IsFloating(DataType type);

// Scalar conversions, exact if the type holds the value. Bits are in the low bytes.
float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);
float Bfloat16ToFloat(uint16_t bits);
uint16_t FloatToBfloat16(float value);
float E4m3ToFloat(uint8_t bits);
uint8_t FloatToE4m3(float value);
float E5m2ToFloat(uint8_t bits);
uint8_t FloatToE5m2(float value);

// Defines a reduction, element by element: dst[i] = local[i] op received[i]. avg adds, as sum does.
void ReduceReference(DataType type, ReduceOp op, void* dst, const void* local, const void* received,
                     int64_t count);
// Defines an in-switch reduction: dst[i] = members[0][i] op members[1][i] op .. in this order. Types
// narrower than float are reduced in float and rounded once. dst may be one of the members. Requires: at
// least one member.
void ReduceMembersReference(DataType type, ReduceOp op, void* dst, std::span<const void* const> members,
                            int64_t count);
// For avg of floating types, dst[i] = src[i] / n, on first read. Other cases copy.
void ScaleReference(DataType type, ReduceOp op, int32_t n, void* dst, const void* src, int64_t count);
// For avg of integers, divides by n in place, toward zero. Other cases do nothing.
void FinishReference(DataType type, ReduceOp op, int32_t n, void* data, int64_t count);

}  // namespace xccl
