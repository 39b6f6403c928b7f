// Values of ir/ as kernels know them (device/abi.h). Both sides list them in one order, so that a cast is
// enough; the assertions hold the two lists together.
#pragma once

#include "device/abi.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "ir/protocol_lines.h"

namespace xccl {

constexpr device::Type ToDevice(DataType type) { return static_cast<device::Type>(type); }
constexpr device::Operator ToDevice(ReduceOp op) { return static_cast<device::Operator>(op); }
constexpr device::Protocol ToDevice(Protocol protocol) { return static_cast<device::Protocol>(protocol); }

static_assert(ToDevice(DataType::kInt8) == device::Type::kInt8);
static_assert(ToDevice(DataType::kUint8) == device::Type::kUint8);
static_assert(ToDevice(DataType::kInt32) == device::Type::kInt32);
static_assert(ToDevice(DataType::kUint32) == device::Type::kUint32);
static_assert(ToDevice(DataType::kInt64) == device::Type::kInt64);
static_assert(ToDevice(DataType::kUint64) == device::Type::kUint64);
static_assert(ToDevice(DataType::kHalf) == device::Type::kHalf);
static_assert(ToDevice(DataType::kFloat) == device::Type::kFloat);
static_assert(ToDevice(DataType::kDouble) == device::Type::kDouble);
static_assert(ToDevice(DataType::kBfloat16) == device::Type::kBfloat16);
static_assert(ToDevice(DataType::kFp8E4m3) == device::Type::kFp8E4m3);
static_assert(ToDevice(DataType::kFp8E5m2) == device::Type::kFp8E5m2);

static_assert(ToDevice(ReduceOp::kSum) == device::Operator::kSum);
static_assert(ToDevice(ReduceOp::kProd) == device::Operator::kProd);
static_assert(ToDevice(ReduceOp::kMin) == device::Operator::kMin);
static_assert(ToDevice(ReduceOp::kMax) == device::Operator::kMax);
static_assert(ToDevice(ReduceOp::kAvg) == device::Operator::kAvg);

static_assert(ToDevice(Protocol::kSimple) == device::Protocol::kSimple);
static_assert(ToDevice(Protocol::kLl) == device::Protocol::kLl);
static_assert(ToDevice(Protocol::kLl128) == device::Protocol::kLl128);

static_assert(LineOf(Protocol::kLl).data_bytes == device::kLlData);
static_assert(LineOf(Protocol::kLl).wire_bytes == device::kLlLine);
static_assert(LineOf(Protocol::kLl128).data_bytes == device::kLl128Data);
static_assert(LineOf(Protocol::kLl128).wire_bytes == device::kLl128Line);

}  // namespace xccl
