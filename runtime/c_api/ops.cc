// Operators that programs make.
#include <fmt/core.h>

#include <cstring>
#include <mutex>

#include "base/status.h"
#include "ir/numbers.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/run.h"
#include "runtime/communicator.h"
#include "runtime/xccl.h"

namespace {

using xccl::DataType;
using xccl::InvalidInput;
using xccl::OkStatus;
using xccl::Status;
using xccl::UsageError;
using xccl::c_api::Comm;
using xccl::c_api::RunOn;

Status Check(const xcclRedOp_t* op, const void* scalar, xcclDataType_t type,
             xcclScalarResidence_t residence) {
  if (op == nullptr || scalar == nullptr)
    return UsageError(op == nullptr ? "the operator is null" : "the scalar is null");
  if (static_cast<size_t>(type) >= xcclNumTypes)
    return UsageError(fmt::format("data type {}; expected 0 to 11", static_cast<int>(type)));
  if (residence == xcclScalarHostImmediate) return OkStatus();
  if (residence == xcclScalarDevice)
    return InvalidInput(
        "scalar residence xcclScalarDevice; expected xcclScalarHostImmediate: the CPU reads it in the call");
  return UsageError(fmt::format("scalar residence {}; expected 0 or 1", static_cast<int>(residence)));
}

}  // namespace

xcclResult_t xcclRedOpCreatePreMulSum(xcclRedOp_t* op, const void* scalar, xcclDataType_t type,
                                      xcclScalarResidence_t residence, xcclComm_t comm) {
  return RunOn(comm, [&](Comm& of) -> Status {
    XCCL_RETURN_IF_ERROR(Check(op, scalar, type, residence));
    const std::lock_guard lock(of.mutex);
    if (of.settings.device)
      return InvalidInput(
          fmt::format("rank {}: is on GPU {}; expected the CPU: no kernel multiplies by a scalar",
                      of.communicator.rank().value, *of.settings.device));
    if (of.next_op == xcclMaxRedOp) return InvalidInput("no numbers are left for operators");
    xccl::c_api::UserOp made{.type = static_cast<DataType>(type)};
    std::memcpy(made.scalar.data(), scalar, static_cast<size_t>(SizeOf(made.type)));
    of.ops[of.next_op] = made;
    *op = static_cast<xcclRedOp_t>(of.next_op++);
    return OkStatus();
  });
}

xcclResult_t xcclRedOpDestroy(xcclRedOp_t op, xcclComm_t comm) {
  return RunOn(comm, [&](Comm& of) -> Status {
    const std::lock_guard lock(of.mutex);
    if (of.ops.erase(static_cast<int>(op)) == 1) return OkStatus();
    return UsageError(
        fmt::format("reduction {}; expected one made by xcclRedOpCreatePreMulSum", static_cast<int>(op)));
  });
}
