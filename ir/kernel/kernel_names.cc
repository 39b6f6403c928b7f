#include "ir/kernel/kernel_names.h"

#include <array>

namespace xccl {

std::string_view DeviceName(DataType type) {
  constexpr std::array<std::string_view, 12> kNames = {"int8_t",  "uint8_t",  "int32_t", "uint32_t",
                                                       "int64_t", "uint64_t", "Half",    "float",
                                                       "double",  "Bfloat16", "E4m3",    "E5m2"};
  return kNames[static_cast<size_t>(type)];
}

std::string_view DeviceName(ReduceOp op) {
  constexpr std::array<std::string_view, 5> kNames = {"kSum", "kProd", "kMin", "kMax", "kAvg"};
  return kNames[static_cast<size_t>(op)];
}

std::string_view DeviceName(Protocol protocol) {
  constexpr std::array<std::string_view, kNumProtocols> kNames = {"kSimple", "kLl", "kLl128"};
  return kNames[static_cast<size_t>(protocol)];
}

}  // namespace xccl
