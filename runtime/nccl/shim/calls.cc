#include "runtime/nccl/shim/calls.h"

#include <fmt/core.h>

#include "runtime/nccl/shim/say.h"
#include "runtime/xccl.h"

namespace xccl::nccl_shim {
namespace {

// The numbers of results, types and operators are NCCL's.
static_assert(xcclSuccess == kSuccess && xcclInvalidUsage == kInvalidUsage && xcclInProgress == kInProgress &&
              xcclUint8 == kUint8 && xcclNumTypes == kNumTypes && xcclNumOps == kNumOperators);

int Lacks(CollectiveKind kind) {
  Say(fmt::format("{}: this NCCL has none, and no plan serves the call", ToString(kind)));
  return kInvalidUsage;
}

xcclResult_t Run(const NcclCall& call, xcclComm_t comm) {
  const auto type = static_cast<xcclDataType_t>(call.type);
  const auto op = static_cast<xcclRedOp_t>(call.op);
  switch (call.kind) {
    case CollectiveKind::kAllreduce:
      return xcclAllReduce(call.send, call.receive, call.count, type, op, comm, call.stream);
    case CollectiveKind::kBroadcast:
      return xcclBroadcast(call.send, call.receive, call.count, type, call.root, comm, call.stream);
    case CollectiveKind::kReduce:
      return xcclReduce(call.send, call.receive, call.count, type, op, call.root, comm, call.stream);
    case CollectiveKind::kAllgather:
      return xcclAllGather(call.send, call.receive, call.count, type, comm, call.stream);
    case CollectiveKind::kReduceScatter:
      return xcclReduceScatter(call.send, call.receive, call.count, type, op, comm, call.stream);
    case CollectiveKind::kAlltoall:
      return xcclAlltoAll(call.send, call.receive, call.count, type, comm, call.stream);
    case CollectiveKind::kGather:
      return xcclGather(call.send, call.receive, call.count, type, call.root, comm, call.stream);
    case CollectiveKind::kScatter:
      return xcclScatter(call.send, call.receive, call.count, type, call.root, comm, call.stream);
    default:
      return xcclInternalError;
  }
}

}  // namespace

int CallNccl(const Nccl& nccl, const NcclCall& call, NcclComm comm) {
  const InsideNccl inside;
  switch (call.kind) {
    case CollectiveKind::kAllreduce:
      return nccl.AllReduce(call.send, call.receive, call.count, call.type, call.op, comm, call.stream);
    case CollectiveKind::kBroadcast:
      return nccl.Broadcast(call.send, call.receive, call.count, call.type, call.root, comm, call.stream);
    case CollectiveKind::kReduce:
      return nccl.Reduce(call.send, call.receive, call.count, call.type, call.op, call.root, comm,
                         call.stream);
    case CollectiveKind::kAllgather:
      return nccl.AllGather(call.send, call.receive, call.count, call.type, comm, call.stream);
    case CollectiveKind::kReduceScatter:
      return nccl.ReduceScatter(call.send, call.receive, call.count, call.type, call.op, comm, call.stream);
    case CollectiveKind::kAlltoall:
      if (nccl.AlltoAll == nullptr) return Lacks(call.kind);
      return nccl.AlltoAll(call.send, call.receive, call.count, call.type, comm, call.stream);
    case CollectiveKind::kGather:
      if (nccl.Gather == nullptr) return Lacks(call.kind);
      return nccl.Gather(call.send, call.receive, call.count, call.type, call.root, comm, call.stream);
    case CollectiveKind::kScatter:
      if (nccl.Scatter == nullptr) return Lacks(call.kind);
      return nccl.Scatter(call.send, call.receive, call.count, call.type, call.root, comm, call.stream);
    default:
      return kInvalidUsage;
  }
}

int CallOurs(Member& member, const NcclCall& call) {
  const xcclComm_t comm = member.Ours();
  if (comm == nullptr) return kInvalidUsage;
  const xcclResult_t result = Run(call, comm);
  if (result != xcclSuccess)
    Say(fmt::format("rank {} of {}: {}", member.rank, member.ranks, xcclGetLastError(comm)));
  return result;
}

}  // namespace xccl::nccl_shim
