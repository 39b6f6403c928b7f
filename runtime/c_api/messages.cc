// Messages between pairs of ranks: send, receive, and alltoallv as the messages that it is made of.
#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "runtime/c_api/group.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/run.h"
#include "runtime/communicator.h"
#include "runtime/pairs.h"
#include "runtime/xccl.h"

namespace {

using xccl::CollectiveKind;
using xccl::DataType;
using xccl::InvalidInput;
using xccl::OkStatus;
using xccl::PairMessage;
using xccl::Rank;
using xccl::Status;
using xccl::StatusOr;
using xccl::UsageError;
using xccl::c_api::Comm;
using xccl::c_api::RunOn;

constexpr size_t kMostElements = size_t{1} << 60;

Status CheckDevice(Comm& comm) {
  const std::lock_guard lock(comm.mutex);
  if (!comm.settings.device) return OkStatus();
  return InvalidInput(fmt::format(
      "rank {}: is on GPU {}; expected the CPU: no kernel sends, receives or runs alltoallv without a plan",
      comm.communicator.rank().value, *comm.settings.device));
}

// The data of a sender is not written.
StatusOr<PairMessage> MessageOf(CollectiveKind call, bool sends, int peer, const void* data, size_t count,
                                xcclDataType_t type) {
  if (static_cast<size_t>(type) >= xcclNumTypes)
    return UsageError(fmt::format("data type {}; expected 0 to 11", static_cast<int>(type)));
  if (count > kMostElements) return UsageError(fmt::format("count {} is too large", count));
  return PairMessage{.call = call,
                     .sends = sends,
                     .peer = Rank(peer),
                     .data = static_cast<std::byte*>(const_cast<void*>(data)),
                     .count = static_cast<int64_t>(count),
                     .type = static_cast<DataType>(type)};
}

Status Enqueue(xcclComm_t comm, Comm& on, std::vector<PairMessage> messages) {
  XCCL_RETURN_IF_ERROR(CheckDevice(on));
  if (!xccl::c_api::InGroup()) return on.communicator.EnqueuePairs(std::move(messages));
  XCCL_RETURN_IF_ERROR(on.communicator.CheckPairArguments(messages));
  const std::string name = fmt::format("rank {}: a message", on.communicator.rank().value);
  xccl::c_api::DeferMessages(
      comm, messages, [&](const xccl::c_api::KeptMessages& kept) -> xccl::c_api::GroupCall {
        return {
            .run = [=] { return RunOn(comm, [&](Comm& of) { return of.communicator.EnqueuePairs(*kept); }); },
            .check = [=] { return RunOn(comm, [&](Comm& of) { return of.communicator.CheckPairs(*kept); }); },
            .name = name};
      });
  return OkStatus();
}

xcclResult_t EnqueueOne(bool sends, const void* data, size_t count, xcclDataType_t type, int peer,
                        xcclComm_t comm) {
  return RunOn(comm, [&](Comm& on) -> Status {
    XCCL_ASSIGN_OR_RETURN(const PairMessage message,
                          MessageOf(CollectiveKind::kSendrecv, sends, peer, data, count, type));
    return Enqueue(comm, on, {message});
  });
}

// One side of alltoallv, as its caller gives it.
struct Side {
  const void* data;
  const size_t* counts;
  const size_t* displacements;
};

Status AddMessages(const Side& side, bool sends, xcclDataType_t type, int ranks,
                   std::vector<PairMessage>& messages) {
  const char* const name = sends ? "send" : "receive";
  if (side.counts == nullptr || side.displacements == nullptr)
    return UsageError(fmt::format("alltoallv: the {} {} are null", name,
                                  side.counts == nullptr ? "counts" : "displacements"));
  for (int r = 0; r < ranks; ++r) {
    XCCL_ASSIGN_OR_RETURN(PairMessage message,
                          MessageOf(CollectiveKind::kAlltoallv, sends, r, side.data, side.counts[r], type));
    if (side.displacements[r] > kMostElements / static_cast<size_t>(SizeOf(message.type)))
      return UsageError(
          fmt::format("alltoallv: {} displacement {} is too large", name, side.displacements[r]));
    if (message.data != nullptr) message.data += side.displacements[r] * SizeOf(message.type);
    messages.push_back(message);
  }
  return OkStatus();
}

}  // namespace

xcclResult_t xcclCommConnect(xcclComm_t comm) {
  return xccl::c_api::RunWaiting(comm, [](Comm& on) -> Status {
    XCCL_RETURN_IF_ERROR(CheckDevice(on));
    return on.communicator.ConnectPairs();
  });
}

xcclResult_t xcclSend(const void* sendbuff, size_t count, xcclDataType_t type, int peer, xcclComm_t comm,
                      xcclStream_t /*stream*/) {
  return EnqueueOne(/*sends=*/true, sendbuff, count, type, peer, comm);
}

xcclResult_t xcclRecv(void* recvbuff, size_t count, xcclDataType_t type, int peer, xcclComm_t comm,
                      xcclStream_t /*stream*/) {
  return EnqueueOne(/*sends=*/false, recvbuff, count, type, peer, comm);
}

xcclResult_t xcclAlltoAllv(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                           void* recvbuff, const size_t* recvcounts, const size_t* rdispls,
                           xcclDataType_t type, xcclComm_t comm, xcclStream_t /*stream*/) {
  return RunOn(comm, [&](Comm& on) -> Status {
    std::vector<PairMessage> messages;
    const int ranks = on.communicator.ranks();
    XCCL_RETURN_IF_ERROR(AddMessages({sendbuff, sendcounts, sdispls}, true, type, ranks, messages));
    XCCL_RETURN_IF_ERROR(AddMessages({recvbuff, recvcounts, rdispls}, false, type, ranks, messages));
    return Enqueue(comm, on, std::move(messages));
  });
}
