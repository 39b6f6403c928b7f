// Messages of rows in the slots of connections. A sender writes rows straight into a slot and sends it when
// it is full or nothing else can go on; a receiver reads rows where they lie, and gives the slot back when
// all of them have been passed on. Internal to runtime/experts/rank.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/status.h"
#include "ir/numbers.h"
#include "runtime/endpoint.h"
#include "runtime/transport/call_signature.h"

namespace xccl::dispatch {

// The ranks of a call agree on this. It stands at the beginning of every message.
struct CallHead {
  enum class Kind : uint8_t {
    kDispatch,  // rows with their tokens' choices
    kAgain,     // rows on the ways of an earlier dispatch
    kCombine,
  };
  uint64_t number = 0;    // calls of these connections, from 1; a call whose rows are cut has several
  uint64_t ways = 0;      // kAgain, kCombine: number of the dispatch whose ways it takes
  int64_t row_bytes = 0;  // of a whole row
  Kind kind = Kind::kDispatch;
  uint8_t type = 0;  // kCombine: DataType
  bool operator==(const CallHead&) const = default;
};
struct MessageHead {
  CallHead call;
  int32_t rows = 0;
  bool last = false;        // of a dispatch, on this connection
  bool unreadable = false;  // last: a rank before this connection could not read rows that were lent to it
};
static_assert(sizeof(MessageHead) <= kMessageHead);

// "call 3, combine of 128B rows of half, by the ways of call 2".
std::string ToString(const CallHead& call);
// Fails the call: "rank 1: call 3, dispatch of 64B rows; expected call 3, combine of ..., as on rank 0".
void FailForOther(Endpoint& endpoint, int32_t connection, const CallHead& theirs, const CallHead& mine);

// How a row lies in a message: its header, then its bytes.
struct RowLayout {
  int64_t header_bytes = 0, bytes = 0;  // of the part of a row that the call moves
  int64_t stride() const { return header_bytes + bytes; }
};

// A sender's end of a connection during a call.
class Outlet {
 public:
  Outlet(Endpoint& endpoint, int32_t connection, const CallHead& call, const RowLayout& layout)
      : endpoint_(&endpoint),
        connection_(connection),
        end_(endpoint.At(connection)),
        call_(call),
        stride_(layout.stride()),
        most_(static_cast<int32_t>((endpoint.slot_bytes() - kMessageHead) / stride_)),
        put_(end_.head->load(std::memory_order_relaxed)) {}

  // Room for one more row; a full message is sent for that.
  bool HasRoom() {
    if (rows_ == most_) Send(false);
    return rows_ > 0 || HasSlot();
  }
  // The place of one more row. Requires: HasRoom().
  std::byte* Add() { return Slot() + kMessageHead + stride_ * rows_++; }
  // Sends what there is. True: that was something.
  bool Flush() {
    if (rows_ == 0) return false;
    Send(false);
    return true;
  }
  // Sends what there is as the last message. True: it is sent.
  bool End(bool unreadable) {
    if (ended_ || (rows_ == 0 && !HasSlot())) return ended_;
    Send(true, unreadable);
    return ended_ = true;
  }
  bool empty() const { return rows_ == 0; }
  bool ended() const { return ended_; }
  // Waits for the receiver.
  bool IsFull() const { return rows_ == 0 && !HasSlot(); }
  int32_t connection() const { return connection_; }

 private:
  bool HasSlot() const { return put_ - end_.tail->load(std::memory_order_acquire) < end_.num_slots; }
  std::byte* Slot() const {
    return end_.slots + static_cast<int64_t>(put_ % end_.num_slots) * endpoint_->slot_bytes();
  }
  void Send(bool last, bool unreadable = false) {
    const MessageHead head{call_, rows_, last, unreadable};
    std::memcpy(Slot(), &head, sizeof head);
    endpoint_->Put(connection_, kMessageHead + stride_ * rows_);
    ++put_;
    rows_ = 0;
  }

  Endpoint* endpoint_;
  int32_t connection_;
  ConnectionEnd end_;
  CallHead call_;
  int64_t stride_;
  int32_t most_;
  uint64_t put_;  // messages so far
  int32_t rows_ = 0;
  bool ended_ = false;
};

// A receiver's end of a connection during a call.
class Inlet {
 public:
  Inlet(Endpoint& endpoint, int32_t connection, const CallHead& call, const RowLayout& layout)
      : endpoint_(&endpoint),
        connection_(connection),
        end_(endpoint.At(connection)),
        call_(call),
        stride_(layout.stride()),
        taken_(end_.tail->load(std::memory_order_relaxed)) {}

  // The oldest message is there and of this call. It stays until Pop(). A message of another call fails the
  // endpoint, unless its sender is ahead.
  bool HasMessage() {
    if (end_.head->load(std::memory_order_acquire) == taken_) return false;
    std::memcpy(&head_, Slot(), sizeof head_);
    if (head_.call == call_) return true;
    if (head_.call.number <= call_.number) FailForOther(*endpoint_, connection_, head_.call, call_);
    return false;
  }
  const MessageHead& head() const { return head_; }
  const std::byte* Row(int32_t row) const { return Slot() + kMessageHead + stride_ * row; }
  void Pop() {
    ++taken_;
    endpoint_->Take(connection_, /*together=*/false);
  }
  int32_t connection() const { return connection_; }

 private:
  std::byte* Slot() const {
    return end_.slots + static_cast<int64_t>(taken_ % end_.num_slots) * endpoint_->slot_bytes();
  }

  Endpoint* endpoint_;
  int32_t connection_;
  ConnectionEnd end_;
  CallHead call_;
  int64_t stride_;
  uint64_t taken_;  // messages so far
  MessageHead head_;
};

}  // namespace xccl::dispatch
