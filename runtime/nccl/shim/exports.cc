// The names of nccl.h that stand before NCCL's own. All others reach libnccl as if there were no shim.
#include "runtime/nccl/shim/shim.h"

namespace {

using xccl::CollectiveKind;
using xccl::nccl_shim::NcclComm;
using xccl::nccl_shim::RunCollective;

}  // namespace

extern "C" {

int ncclAllReduce(const void* send, void* receive, size_t count, int type, int op, NcclComm comm,
                  void* stream) {
  return RunCollective({CollectiveKind::kAllreduce, send, receive, count, type, op, 0, stream}, comm);
}

int ncclBroadcast(const void* send, void* receive, size_t count, int type, int root, NcclComm comm,
                  void* stream) {
  return RunCollective({CollectiveKind::kBroadcast, send, receive, count, type, 0, root, stream}, comm);
}

int ncclBcast(void* buffer, size_t count, int type, int root, NcclComm comm, void* stream) {
  return RunCollective({CollectiveKind::kBroadcast, buffer, buffer, count, type, 0, root, stream}, comm);
}

int ncclReduce(const void* send, void* receive, size_t count, int type, int op, int root, NcclComm comm,
               void* stream) {
  return RunCollective({CollectiveKind::kReduce, send, receive, count, type, op, root, stream}, comm);
}

int ncclAllGather(const void* send, void* receive, size_t count, int type, NcclComm comm, void* stream) {
  return RunCollective({CollectiveKind::kAllgather, send, receive, count, type, 0, 0, stream}, comm);
}

int ncclReduceScatter(const void* send, void* receive, size_t count, int type, int op, NcclComm comm,
                      void* stream) {
  return RunCollective({CollectiveKind::kReduceScatter, send, receive, count, type, op, 0, stream}, comm);
}

int ncclAlltoAll(const void* send, void* receive, size_t count, int type, NcclComm comm, void* stream) {
  return RunCollective({CollectiveKind::kAlltoall, send, receive, count, type, 0, 0, stream}, comm);
}

int ncclGather(const void* send, void* receive, size_t count, int type, int root, NcclComm comm,
               void* stream) {
  return RunCollective({CollectiveKind::kGather, send, receive, count, type, 0, root, stream}, comm);
}

int ncclScatter(const void* send, void* receive, size_t count, int type, int root, NcclComm comm,
                void* stream) {
  return RunCollective({CollectiveKind::kScatter, send, receive, count, type, 0, root, stream}, comm);
}

int ncclGroupStart() { return xccl::nccl_shim::StartGroup(); }
int ncclGroupEnd() { return xccl::nccl_shim::EndGroup(); }
int ncclGroupSimulateEnd(void* info) { return xccl::nccl_shim::SimulateGroup(info); }

int ncclCommDestroy(NcclComm comm) { return xccl::nccl_shim::DestroyComm(comm); }
int ncclCommFinalize(NcclComm comm) { return xccl::nccl_shim::FinalizeComm(comm); }
int ncclCommAbort(NcclComm comm) { return xccl::nccl_shim::AbortComm(comm); }
int ncclCommRevoke(NcclComm comm, int flags) { return xccl::nccl_shim::RevokeComm(comm, flags); }
int ncclCommShrink(NcclComm comm, int* exclude, int count, NcclComm* made, void* config, int flags) {
  return xccl::nccl_shim::ShrinkComm(comm, exclude, count, made, config, flags);
}
int ncclCommGetAsyncError(NcclComm comm, int* error) { return xccl::nccl_shim::AsyncErrorOf(comm, error); }

}  // extern "C"
