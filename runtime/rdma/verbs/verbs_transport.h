// The state of a rank's connections over libibverbs; connect.cc fills it.
//
// A put is a write of the message from this rank's slot into the peer's, then an inline write of the head
// into the peer's cell, on one reliable queue pair. The device keeps their order, so a receiver that reads
// the new head reads the message. A take writes the tail alike. Counters only grow, so a write that is
// repeated does no harm. Writes of counters also complete a receive at the peer, which wakes it when it
// sleeps, and checks there that the counter can be.
//
// A key has 32 bits, which the device chooses. Strangers are kept out by the queue pair: it takes requests
// only from the queue pair that it is connected with, and a key is valid only for the queue pairs of its
// rail.
//
// A sender writes a slot again when it has seen the tail, which may be before it has seen its own write
// complete. The peer then has the whole message, and drops what the device may still send again.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/rdma/verbs/library.h"
#include "runtime/rdma/verbs/rail.h"
#include "runtime/transport/network.h"
#include "runtime/transport/transport.h"

namespace xccl::verbs {

// A put or a take that is to be posted.
struct Write {
  int32_t place = 0;  // the connection's in the layout
  bool take = false;
  uint64_t counter = 0;
  int64_t bytes = 0;  // the message's size
};

// One reliable queue pair with a peer, for all connections between two rails.
struct QueuePair {
  Owned<ibv_qp> pair;
  size_t rail = 0;                          // index among the devices
  std::string peer_name;                    // "rank 1 (host7)"
  uint64_t peer_slots = 0, peer_cells = 0;  // addresses
  uint32_t peer_slots_key = 0, peer_cells_key = 0;
  uint32_t depth = 0;                                 // requests that may be under way
  uint32_t receives = 0;                              // posted, always
  uint32_t posted = 0, completed = 0, signalled = 0;  // requests since the beginning; they wrap round
  uint32_t arrived = 0;                               // receives to be posted again
  std::deque<Write> waiting;                          // in order, until the queue has room
};

class VerbsTransport final : public Transport {
 public:
  // answer_limit: how long a peer's device may leave a request unanswered; for messages.
  VerbsTransport(const Library& library, const NetworkMemory& memory, std::vector<Rail> rails,
                 std::chrono::nanoseconds answer_limit);

  ConnectionEnd At(int32_t connection) override;
  void Put(int32_t connection, int64_t bytes) override;
  void Take(int32_t connection, bool together) override;
  StatusOr<bool> Progress() override;
  bool Flushed() const override { return waiting_ == 0; }
  std::span<const int> files() const override { return files_; }
  bool PrepareToSleep() override;

  // For Connect.
  std::vector<Rail>& rails() { return rails_; }
  std::vector<QueuePair>& pairs() { return pairs_; }
  // The connections in the layout's order, each over the queue pair of that index.
  void AddConnection(const RemoteConnection& at, size_t pair);
  // Fills the pair's queue of receives.
  Status PostReceives(QueuePair& pair, uint32_t count);
  // Files to sleep on and receives, when all queue pairs are there.
  Status Start();

 private:
  struct Place {
    RemoteConnection at;
    size_t pair = 0;
  };
  int32_t PlaceOf(int32_t connection) const { return place_[static_cast<size_t>(connection)]; }
  void Begin(const Write& write);
  void Post(QueuePair& pair, const Write& write);
  bool HasRoom(const QueuePair& pair) const;
  // Reads all completions, and posts the writes that waited for room.
  void Drain();
  void Complete(const ibv_wc& completion);
  // Checks a counter that a peer has written. Errors: kSystem naming the peer where it belongs to no
  // connection with the peer, or its value is impossible.
  Status CheckSignal(const ibv_wc& completion, size_t pair) const;
  void Fail(const Status& status);

  const Library& library_;
  const NetworkMemory memory_;
  const std::chrono::nanoseconds answer_limit_;
  std::vector<Rail> rails_;
  std::vector<QueuePair> pairs_;  // destroyed before the rails' queues
  std::vector<size_t> touched_;   // pairs whose completions are being read
  std::vector<Place> places_;     // as the layout
  std::vector<int32_t> place_;    // by connection of the wiring
  std::vector<int> files_;
  std::vector<ibv_recv_wr> receives_;  // a chain of empty ones
  int64_t waiting_ = 0;                // writes, over all pairs
  // The number of puts and takes since completions were last read, and how many may pass before they must be
  // read again: half of the receives of the pair that has fewest.
  uint32_t uses_ = 0, uses_allowed_ = 0;
  bool moved_ = false;
  bool armed_ = false;
  Status failure_;
};

// How long a device waits for an answer before it sends again: 4.096 us * 2^exponent, kRetries times. An
// eighth of the time limit for all of them leaves a lost link's ranks the time to say so. Seven, the most
// that a queue pair takes, means for ever to Linux's rdma_rxe.
constexpr int kRetries = 6;
int TimeoutExponent(std::chrono::nanoseconds time_limit);
std::chrono::nanoseconds AnswerLimit(int exponent);

// Reaches and Connect (transport.h) over this library, or with the reason why there is none.
Status ReachesOver(const Library& library, const NetworkMemory& memory, const NetworkOptions& options);
StatusOr<std::unique_ptr<Transport>> ConnectOver(const StatusOr<const Library*>& library,
                                                 const NetworkMemory& memory, const NetworkOptions& options);

}  // namespace xccl::verbs
