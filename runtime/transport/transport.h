// Moves messages between ranks that a CPU drives, connection by connection. GPUs that reach each other's
// memory connect themselves (runtime/cuda/device_program.h). A connection is slots and two counters that only
// grow: `head`, messages put by the sender, and `tail`, messages taken by the receiver. Message m lies in
// slot m % slots. A put writes the data and then makes the head visible; a receiver that sees head > m sees
// message m's bytes. Implementations: transport/shm (ranks of one host), rdma/verbs and rdma/ofi
// (networks).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/status.h"
#include "runtime/transport/call_signature.h"

namespace xccl {

// The place of a message's bytes when they are not in its slot: the sender's own buffer, chunk by chunk.
struct DirectSource {
  const std::byte* base = nullptr;   // null: the bytes are in the slot
  const int64_t* offsets = nullptr;  // bytes; chunk c begins at base + offsets[c * stride]
  int64_t stride = 1;
  CallSignature call = {};  // the message's call, also where the bytes are in the slot
};

// One end's view of one connection. The sender writes slots, `direct` and, through Put, head; the receiver
// writes tail through Take. Each end loads its own counter relaxed and the other's with acquire.
struct ConnectionEnd {
  std::byte* slots = nullptr;
  uint64_t num_slots = 1;
  // The messages that may be under way in a call that is cut into passes; at most num_slots. With few under
  // way, the flows of a link share its bandwidth in proportion to their messages, as the plan has it; with
  // many, as TCP shares it.
  uint64_t window = 1;
  DirectSource* direct = nullptr;  // one a slot; null where ranks do not share an address space
  const std::atomic<uint64_t>* head = nullptr;
  const std::atomic<uint64_t>* tail = nullptr;
};

// One rank's ends of the connections of one kind. Used by one thread at a time. An index is that of
// Wiring::connections, and this rank is an end of it.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual ConnectionEnd At(int32_t connection) = 0;
  // Sender: one more message, of `bytes` bytes in the slot (zero when direct), is complete.
  virtual void Put(int32_t connection, int64_t bytes) = 0;
  // Receiver: one more message has been read; its slot may be written again. `together`: the sender may learn
  // of it together with later messages.
  virtual void Take(int32_t connection, bool together) = 0;
  // Receiver: senders learn of all messages that have been read.
  virtual void GiveBack() {}

  // Moves what is under way without waiting. True: a counter of this rank has changed. Errors name the peer,
  // and end the operation.
  virtual StatusOr<bool> Progress() = 0;
  // Everything that was put and taken reaches its peer without another call of Progress.
  virtual bool Flushed() const = 0;
  // Sleeping: files() become readable when Progress has something to do, provided that PrepareToSleep
  // returned true after the last call of Progress.
  virtual std::span<const int> files() const = 0;
  virtual bool PrepareToSleep() = 0;
};

}  // namespace xccl
