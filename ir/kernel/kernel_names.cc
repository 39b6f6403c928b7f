#include "ir/kernel/kernel_names.h"

namespace xccl {

std::string_view DeviceName(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return "int8_t";
    case DataType::kUint8:
      return "uint8_t";
    case DataType::kInt32:
      return "int32_t";
    case DataType::kUint32:
      return "uint32_t";
    case DataType::kInt64:
      return "int64_t";
    case DataType::kUint64:
      return "uint64_t";
    case DataType::kHalf:
      return "Half";
    case DataType::kFloat:
      return "float";
    case DataType::kDouble:
      return "double";
    case DataType::kBfloat16:
      return "Bfloat16";
    case DataType::kFp8E4m3:
      return "E4m3";
    case DataType::kFp8E5m2:
      return "E5m2";
  }
  return "";
}

std::string_view DeviceName(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "kSum";
    case ReduceOp::kProd:
      return "kProd";
    case ReduceOp::kMin:
      return "kMin";
    case ReduceOp::kMax:
      return "kMax";
    case ReduceOp::kAvg:
      return "kAvg";
  }
  return "";
}

std::string_view DeviceName(Protocol protocol) {
  switch (protocol) {
    case Protocol::kSimple:
      return "kSimple";
    case Protocol::kLl:
      return "kLl";
    case Protocol::kLl128:
      return "kLl128";
  }
  return "";
}

}  // namespace xccl
