// A rank's membership in a group of processes: who is there and on which host, small blobs from all to all,
// a barrier, and who fails. Ranks meet by TCP at a rendezvous, which one process serves until all have come.
// Each rank then keeps a socket to the ranks that are 1, 2, 4, ... away, so 10,000 ranks need 28 sockets
// each, and an all-gather 14 messages. One thread of each rank, the watcher, reads these sockets: heartbeats,
// notices that a rank leaves, and failures, which every rank passes on. So idle ranks learn of a failure too.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "runtime/bootstrap/options.h"
#include "runtime/bootstrap/placement.h"

namespace xccl {

// Thread-safe. All ranks call AllGather and Barrier in one order, one call at a time.
class Bootstrap {
 public:
  // Waits until all ranks have come. Errors: kLimit "rendezvous 10.0.0.1:4000: ranks 3, 5-7 of 8 did not come
  // within 30 s"; kInvalidInput where ranks contradict each other; kSystem.
  static StatusOr<std::unique_ptr<Bootstrap>> Join(const Placement& placement,
                                                   const BootstrapOptions& options);
  // Leaves in good order: the others see that this rank has left, and no failure. Not called from a callback.
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  Rank rank() const;
  int32_t ranks() const;
  // Random, the same on all ranks, letters and digits. Names meetings of one host: abstract sockets.
  const std::string& job() const;
  // This rank's own IP address that others reach.
  const std::string& address() const;
  // By rank: the index of its host. Hosts are numbered by their lowest rank. One host: the same kernel boot
  // and the same network namespace, or the same XCCL_HOST_ID.
  const std::vector<int32_t>& hosts() const;
  const std::vector<std::string>& host_names() const;  // by host
  int32_t local_rank() const;                          // among the ranks of this host, by rank
  int32_t local_ranks() const;

  // The blobs of all ranks, by rank. At most 16 MiB each and 64 MiB in all. Errors: kLimit naming a rank
  // that did not take part, kInvalidInput for sizes, kPeerEnded where a rank has left or ended. Every error
  // but a failure known before fails the group.
  StatusOr<std::vector<std::string>> AllGather(std::string_view mine, std::chrono::nanoseconds limit);
  Status Barrier(std::chrono::nanoseconds limit);  // errors as AllGather's

  // A small text for all ranks, under a key that was not used before; in a group that has failed too, where
  // it reaches those whom living ranks connect. Any rank calls it at any time, and others do nothing for it.
  void Post(std::string_view key, std::string_view text);
  // The text that some rank posts under the key; none within the limit.
  std::optional<std::string> AwaitNote(std::string_view key, std::chrono::nanoseconds limit);

  // Connects this rank with another, unless they are, so that notes go between them also when all ranks
  // between them have ended or left; those of before too. Errors: kPeerEnded where it cannot be reached.
  Status Link(Rank other);
  bool IsLinked(Rank other) const;  // there is a connection, and the other has not left

  // Fails the group: told to all ranks. The first reason stays. Requires: `reason` is not OK.
  void Fail(const Status& reason);
  // The reason why the group has failed, the same text on all ranks wherever possible.
  std::optional<Status> Failure() const;
  // Called once with the failure, by the watcher's thread; at once, by this thread, if the group has failed
  // already. Everything that `callback` uses outlives this object.
  void OnFailure(std::function<void(const Status&)> callback);
  // A rank that has left in good order, and the last call that it noted; 0: none. All ranks hear of it,
  // within a few heartbeats.
  struct LeftRank {
    Rank rank;
    uint64_t call = 0;
  };
  std::vector<LeftRank> Left() const;  // ascending
  bool HasLeft(Rank rank) const;
  void NoteCall(uint64_t call);  // cheap, an atomic

  void NoteProgress();  // cheap, an atomic; from any thread
  // Grows while any rank of the group notes progress, some heartbeats later; stands still when none does.
  uint64_t Progress() const;

 private:
  struct State;
  explicit Bootstrap(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace xccl
