#include "runtime/cuda/kernel_source.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "runtime/cuda/device_headers.h"

namespace xccl::cuda {
namespace {

std::string_view TypeName(DataType type) {
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
  return "float";
}

std::string_view OperatorName(ReduceOp op) {
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
  return "kSum";
}

}  // namespace

const std::vector<SourceFile>& DeviceHeaders() {
  static const std::vector<SourceFile> headers = [] {
    std::vector<SourceFile> all;
    for (const EmbeddedHeader& header : kDeviceHeaders)
      all.push_back({std::string(header.name), std::string(header.text)});
    return all;
  }();
  return headers;
}

CompileRequest KernelRequest(const std::string& name, const std::string& source, DataType type, ReduceOp op,
                             int32_t arch) {
  CompileRequest request;
  request.name = name;
  request.source = source;
  request.headers = DeviceHeaders();
  request.options = {"-default-device",  // constexpr functions carry no attribute
                     fmt::format("-DXCCL_TYPE={}", TypeName(type)),
                     fmt::format("-DXCCL_OPERATOR={}", OperatorName(op))};
  request.arch = arch;
  return request;
}

KernelImages ImagesOfSource(std::string name, std::string source, std::shared_ptr<KernelCache> cache) {
  return [name = std::move(name), source = std::move(source), cache = std::move(cache)](
             DataType type, ReduceOp op, int32_t arch) -> StatusOr<std::string> {
    XCCL_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, LoadNvrtc());
    return cache->Get(*nvrtc, KernelRequest(name, source, type, op, arch));
  };
}

}  // namespace xccl::cuda
