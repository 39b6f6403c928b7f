// The collectives and the groups of the C API.
#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "runtime/c_api/group.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/run.h"
#include "runtime/communicator.h"
#include "runtime/served_plan.h"
#include "runtime/xccl.h"

namespace {

using xccl::Call;
using xccl::CollectiveKind;
using xccl::DataType;
using xccl::OkStatus;
using xccl::Rank;
using xccl::ReduceOp;
using xccl::Status;
using xccl::StatusOr;
using xccl::UsageError;
using xccl::c_api::Comm;
using xccl::c_api::RunOn;

static_assert(static_cast<int>(DataType::kUint64) == xcclUint64 &&
              static_cast<int>(DataType::kHalf) == xcclFloat16 &&
              static_cast<int>(DataType::kBfloat16) == xcclBfloat16 &&
              static_cast<int>(DataType::kFp8E5m2) == xcclFloat8e5m2);
constexpr std::array<ReduceOp, xcclNumOps> kOps = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax,
                                                   ReduceOp::kMin, ReduceOp::kAvg};

// Requires: the operator is none of the numbered ones.
Status SetUserOp(Comm& on, xcclRedOp_t op, Call& call) {
  const std::lock_guard lock(on.mutex);
  const auto found = on.ops.find(static_cast<int>(op));
  if (found == on.ops.end())
    return UsageError(fmt::format("reduction {}; expected 0 to 4, or one made by xcclRedOpCreatePreMulSum",
                                  static_cast<int>(op)));
  if (found->second.type != call.type)
    return UsageError(fmt::format("reduction {}: its scalar is {}; expected {}, as the call's data",
                                  static_cast<int>(op), ToString(found->second.type), ToString(call.type)));
  call.scalar = found->second.scalar;
  return OkStatus();
}

StatusOr<Call> CallOf(Comm& on, CollectiveKind kind, const void* send, void* receive, size_t count,
                      xcclDataType_t type, xcclRedOp_t op, std::optional<Rank> root, xcclStream_t stream) {
  if (static_cast<size_t>(type) >= xcclNumTypes)
    return UsageError(fmt::format("data type {}; expected 0 to 11", static_cast<int>(type)));
  if (count > size_t{1} << 62) return UsageError(fmt::format("count {} is too large", count));
  Call call{kind,
            static_cast<const std::byte*>(send),
            static_cast<std::byte*>(receive),
            static_cast<int64_t>(count),
            static_cast<DataType>(type),
            ReduceOp::kSum,
            root,
            stream};
  if (static_cast<size_t>(op) < kOps.size()) {
    call.op = kOps[op];
  } else {
    XCCL_RETURN_IF_ERROR(SetUserOp(on, op, call));
  }
  return call;
}

bool IsOnGpu(Comm& on) {
  const std::lock_guard lock(on.mutex);
  return on.settings.device.has_value();
}

// In a group everything that one rank can know is checked now, and the rest when it ends: other ranks' calls
// of the group would wait for a call that is refused then.
xcclResult_t Enqueue(xcclComm_t comm, CollectiveKind kind, const void* send, void* receive, size_t count,
                     xcclDataType_t type, xcclRedOp_t op, std::optional<Rank> root, xcclStream_t stream) {
  return RunOn(comm, [&](Comm& on) -> Status {
    XCCL_ASSIGN_OR_RETURN(const Call call, CallOf(on, kind, send, receive, count, type, op, root, stream));
    if (!xccl::c_api::InGroup()) return on.communicator.Enqueue(call);
    XCCL_RETURN_IF_ERROR(on.communicator.CheckArguments(call));
    const auto later = [&](Status (xccl::Communicator::*what)(const Call&)) {
      return
          [=] { return RunOn(comm, [&](Comm& then) -> Status { return (then.communicator.*what)(call); }); };
    };
    xccl::c_api::GroupCall deferred{.run = later(&xccl::Communicator::Enqueue),
                                    .check = later(&xccl::Communicator::Check)};
    if (!IsOnGpu(on)) {
      const Rank rank = on.communicator.rank();
      const auto memory = xccl::MemoryOf(call, rank, on.communicator.ranks());
      deferred.memory.assign(memory.begin(), memory.end());
      deferred.name = fmt::format("rank {}: {}", rank.value, ToString(kind));
    }
    xccl::c_api::Defer(comm, /*waits=*/false, std::move(deferred));
    return OkStatus();
  });
}

}  // namespace

xcclResult_t xcclAllReduce(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type,
                           xcclRedOp_t op, xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kAllreduce, sendbuff, recvbuff, count, type, op, std::nullopt, stream);
}

xcclResult_t xcclBroadcast(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type, int root,
                           xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kBroadcast, sendbuff, recvbuff, count, type, xcclSum, Rank(root),
                 stream);
}

xcclResult_t xcclReduce(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type,
                        xcclRedOp_t op, int root, xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kReduce, sendbuff, recvbuff, count, type, op, Rank(root), stream);
}

xcclResult_t xcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, xcclDataType_t type,
                           xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kAllgather, sendbuff, recvbuff, sendcount, type, xcclSum, std::nullopt,
                 stream);
}

xcclResult_t xcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, xcclDataType_t type,
                               xcclRedOp_t op, xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kReduceScatter, sendbuff, recvbuff, recvcount, type, op, std::nullopt,
                 stream);
}

xcclResult_t xcclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type,
                          xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kAlltoall, sendbuff, recvbuff, count, type, xcclSum, std::nullopt,
                 stream);
}

xcclResult_t xcclGather(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type, int root,
                        xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kGather, sendbuff, recvbuff, count, type, xcclSum, Rank(root), stream);
}

xcclResult_t xcclScatter(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type, int root,
                         xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kScatter, sendbuff, recvbuff, count, type, xcclSum, Rank(root),
                 stream);
}

xcclResult_t xcclBcast(void* buff, size_t count, xcclDataType_t type, int root, xcclComm_t comm,
                       xcclStream_t stream) {
  return xcclBroadcast(buff, buff, count, type, root, comm, stream);
}

xcclResult_t xcclGroupStart(void) {
  xccl::c_api::StartGroup();
  return xcclSuccess;
}

xcclResult_t xcclGroupEnd(void) {
  try {
    return xccl::c_api::EndGroup();
  } catch (const std::exception& error) {
    return xccl::c_api::Fail(xcclSystemError, error.what());
  }
}
