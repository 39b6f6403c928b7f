// One rank's end of everything: its connections, over one transport or several, and what all ranks of an
// operation share: waking, progress, failure, barriers. It is what the executor uses.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "runtime/transport/call_signature.h"
#include "runtime/transport/shared_region.h"
#include "runtime/transport/transport.h"

namespace xccl {

// Ranks of several hosts: what they share beside the region of each host. Safe from any thread.
class EndpointGroup {
 public:
  virtual ~EndpointGroup() = default;
  virtual void NoteProgress() = 0;
  virtual uint64_t Progress() const = 0;  // grows while any rank of another host notes progress
  virtual void Fail(const Status& status) = 0;
  // As Fail, where `status` names the rank that is to blame: the group does not look for it.
  virtual void FailAsSaid(const Status& status) = 0;
  virtual Status Barrier(std::chrono::nanoseconds limit) = 0;
  // This rank is in, or enters, a call, for what others hear when it leaves.
  virtual void NoteCall(const CallSignature& call) = 0;
  // A rank that has left in good order, after that call.
  struct LeftRank {
    Rank rank;
    CallSignature call;  // only `which`
  };
  virtual std::vector<LeftRank> Left() const = 0;
  virtual bool HasLeft(Rank rank) const = 0;
};

// Memory that an endpoint's transports use and that the endpoint owns.
class EndpointMemory {
 public:
  virtual ~EndpointMemory() = default;
};

// Used by one thread at a time, save Fail and Failure, which are for all.
class Endpoint {
 public:
  // All connections lie in the region, which outlives the endpoint.
  Endpoint(const SharedRegion& region, Rank rank);
  // Connections by index: over the transport of that index in `transports`; -1: this rank is no end of it.
  struct Parts {
    std::unique_ptr<EndpointMemory> memory;  // freed after the transports
    const SharedRegion* region = nullptr;    // this host's; outlives the endpoint, or lies in `memory`
    EndpointGroup* group = nullptr;          // outlives it; null: all ranks are of this host
    std::vector<std::unique_ptr<Transport>> transports;
    std::vector<int32_t> transport_of;
  };
  Endpoint(Parts parts, Rank rank);

  ~Endpoint();

  Rank rank() const { return rank_; }
  int32_t ranks() const { return region_.wiring().ranks; }
  int64_t slot_bytes() const { return region_.wiring().slot_bytes; }
  const Wiring& wiring() const { return region_.wiring(); }
  // All ranks are of one host.
  bool OnOneHost() const { return transports_.size() == 1; }
  // As Transport's.
  ConnectionEnd At(int32_t connection) { return TransportOf(connection).At(connection); }
  void Put(int32_t connection, int64_t bytes) { TransportOf(connection).Put(connection, bytes); }
  void Take(int32_t connection, bool together) { TransportOf(connection).Take(connection, together); }

  // Moves what is under way on networks. True: a counter of this rank has changed. A failure of a network
  // fails the operation.
  bool Progress();
  // All that was put and taken arrives without this rank.
  bool Flushed() const;
  // Tells senders of all that this rank has taken, which Take may leave for later: they wait for it before
  // they close. For a rank that has nothing to do for a while, until it returns true.
  bool GiveBack();
  // Sleeping without missing anything: take a ticket, read the counters, and wait when nothing can go on.
  // Wait returns at the latest when any counter of this rank changed after the ticket was taken, when the
  // operation failed, or after `limit`.
  uint32_t Ticket() const;
  void Wait(uint32_t ticket, std::chrono::nanoseconds limit);
  // Called before and after an operation. A rank that has entered reads the memory that other ranks lent it
  // until it leaves. After a failure Leave returns only when no rank that shares this address space reads any
  // more, so that buffers may be freed.
  void Enter();
  void Leave();
  // Counts progress of this rank; the sum over all ranks tells a slow operation from a stuck one.
  void NoteProgress();
  uint64_t TotalProgress() const;

  // Tells the ranks which call this rank is in, or enters: ranks of this host at once, ranks of other hosts
  // when it leaves.
  void Announce(const CallSignature& call);
  // Fails the operation where a rank of this host is in another call of this number, or some rank has left
  // before it. For ranks that wait: linear in the ranks.
  void CheckCalls(const CallSignature& mine);

  // True if a rank of this host has destroyed its endpoint, or a rank of any host has left the group.
  bool HasLeft(Rank rank) const;

  // Ends the operation on all ranks; the first reason stays. AsSaid: as EndpointGroup's.
  void Fail(const Status& status);
  void FailAsSaid(const Status& status);
  std::optional<Status> Failure() const { return region_.Failure(); }
  // Returns when all ranks have come here, or with the reason why they cannot.
  Status Barrier(std::chrono::nanoseconds limit);

 private:
  Transport& TransportOf(int32_t connection) {
    return transport_of_.empty() ? *transports_[0]
                                 : *transports_[static_cast<size_t>(transport_of_[connection])];
  }
  void FailFor(Rank left, const CallSignature& last, const CallSignature& mine);
  void SleepOnFiles(uint32_t ticket, std::chrono::nanoseconds limit);

  const std::unique_ptr<EndpointMemory> memory_;
  const SharedRegion& region_;
  EndpointGroup* const group_;
  const Rank rank_;
  RankCell& cell_;
  const bool spins_;  // there is a core for every rank
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<int32_t> transport_of_;  // empty: all over the first
  bool networked_ = false;             // some transport has files to sleep on
};

// For how long no rank of an operation has noted progress. The ranks of other hosts are heard of some
// heartbeats later.
class Stillness {
 public:
  explicit Stillness(const Endpoint& endpoint);  // outlives this
  std::chrono::nanoseconds Lasts();              // since it was made, or progress was seen

 private:
  const Endpoint* endpoint_;
  uint64_t seen_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace xccl
