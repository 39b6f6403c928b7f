// Messages between pairs of ranks, without a plan: every rank has a connection to every other. The k-th
// message that a rank sends to another is the k-th that the other receives from it.
//
// Messages of one operation run side by side, so a rank's ranges of memory may meet. Every message has the
// data that its range held when the operation began: a send that a receive of the operation writes into reads
// a copy. Two receives that share bytes would leave either's data, and are refused.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "runtime/endpoint.h"
#include "runtime/transport/wiring.h"

namespace xccl {

// One message as one of its ranks sees it.
struct PairMessage {
  CollectiveKind call = CollectiveKind::kSendrecv;  // or kAlltoallv
  bool sends = false;
  Rank peer;
  std::byte* data = nullptr;  // only read by the sender
  int64_t count = 0;          // elements; below 2^60
  DataType type = DataType::kFloat;
};

// A connection from every rank to every other. Errors: kInvalidInput with the bytes of the slots where those
// are too many.
StatusOr<Wiring> WiringOfPairs(int32_t ranks);

// Errors: kUsage naming two receives that share bytes.
Status CheckReceives(std::span<const PairMessage> messages);

// Copies the memory of the sends that some receive writes into, once where such sends share it, and points
// the sends at the copy, which is returned. Requires: CheckReceives.
std::unique_ptr<std::byte[]> HoldSends(std::span<PairMessage> messages);

// The messages of a rank to itself: as many sends as receives, and alike one by one. Errors: kInvalidInput
// with both sides.
Status CheckOwn(std::span<const PairMessage> messages, Rank rank);

// Moves them. Requires: CheckOwn, HoldSends.
void CopyOwn(std::span<const PairMessage> messages, Rank rank);

// One rank's end. Used by one thread at a time, save Fail and Failure.
class Pairs {
 public:
  // Requires: the endpoint's wiring is WiringOfPairs.
  explicit Pairs(std::unique_ptr<Endpoint> endpoint);
  // Moves all of them side by side, those of a peer and direction in their order, and returns when this
  // rank's buffers are its own again: no pattern of messages whose counterparts are in one call each hangs.
  // Errors: kInvalidInput "rank 1: message 3 to rank 0 is sendrecv of 100 float; rank 0 expected sendrecv of
  // 10 float"; kPeerEnded for a peer that has left; kLimit naming the message that nobody sends or receives.
  // Requires: CheckOwn, CheckReceives.
  Status Run(std::vector<PairMessage> messages, std::chrono::nanoseconds time_limit);
  void Fail(const Status& reason) { endpoint_->Fail(reason); }
  std::optional<Status> Failure() const { return endpoint_->Failure(); }

 private:
  const std::unique_ptr<Endpoint> endpoint_;
  std::vector<uint64_t> moved_;  // messages so far, by connection
};

}  // namespace xccl
