// Moves bytes and counters between ranks that a CPU drives: the executor's interface to what connects them.
// GPUs connect themselves (runtime/cuda/device_program.h). A connection is `slots` slots and two counters
// that only grow: `head`, messages put by the sender, and `tail`, messages taken by the receiver. Message m
// lies in slot m % slots. A put writes the data and then makes the head visible; a receiver that sees head >
// m sees message m's bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/status.h"

namespace xccl {

// The place of a message's bytes when they are not in its slot: the sender's own buffer, chunk by chunk.
struct DirectSource {
  const std::byte* base = nullptr;   // null: the bytes are in the slot
  const int64_t* offsets = nullptr;  // bytes; chunk c begins at base + offsets[c * stride]
  int64_t stride = 1;
};

// One end's view of one connection. The sender writes slots, `direct` and, through Put, head; the receiver
// writes tail through Take. Each end loads its own counter relaxed and the other's with acquire.
struct ConnectionEnd {
  std::byte* slots = nullptr;
  DirectSource* direct = nullptr;  // one a slot; null where ranks do not share an address space
  const std::atomic<uint64_t>* head = nullptr;
  const std::atomic<uint64_t>* tail = nullptr;
};

// One rank's end of everything. Used by one thread at a time, save Fail and Failure, which are for all.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Rank rank() const = 0;
  virtual int32_t ranks() const = 0;
  virtual int32_t slots() const = 0;
  virtual int64_t slot_bytes() const = 0;
  // The index is that of Wiring::connections. Requires: this rank is an end of it.
  virtual ConnectionEnd At(int32_t connection) = 0;

  // Sender: one more message, of `bytes` bytes in the slot (zero when direct), is complete.
  virtual void Put(int32_t connection, int64_t bytes) = 0;
  // Receiver: one more message has been read; its slot may be written again.
  virtual void Take(int32_t connection) = 0;

  // Sleeping without missing anything: take a ticket, read the counters, and wait when nothing can go on.
  // Wait returns at the latest when any counter of this rank changed after the ticket was taken, when the
  // operation failed, or after `limit`.
  virtual uint32_t Ticket() const = 0;
  virtual void Wait(uint32_t ticket, std::chrono::nanoseconds limit) = 0;
  // Around an operation. A rank that has entered reads what others lent it until it leaves. After a failure
  // Leave returns only when no rank that shares this address space reads any more, so that buffers may be
  // freed.
  virtual void Enter() = 0;
  virtual void Leave() = 0;
  // Counts progress of this rank; the sum over all ranks tells a slow operation from a stuck one.
  virtual void NoteProgress() = 0;
  virtual uint64_t TotalProgress() const = 0;

  // Ends the operation on all ranks; the first reason stays.
  virtual void Fail(const Status& status) = 0;
  virtual std::optional<Status> Failure() const = 0;
  // Checks that all peers still live, and fails the operation where one does not. Cheap enough for every
  // wait.
  virtual void CheckPeers() = 0;
  // Returns when all ranks have come here, or with the reason why they cannot.
  virtual Status Barrier(std::chrono::nanoseconds limit) = 0;
};

}  // namespace xccl
