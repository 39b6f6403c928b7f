// Transport over a SharedRegion: a put is a release store of the head and a ring of the receiver's doorbell.
// Where ranks are threads, a message may stay in its sender's buffer (DirectSource).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/cpu/shared_region.h"
#include "runtime/owned_file.h"
#include "runtime/transport.h"

namespace xccl {

class SharedTransport final : public Transport {
 public:
  // One rank's end of a region, which outlives it.
  SharedTransport(const SharedRegion& region, Rank rank);
  ~SharedTransport() override;

  Rank rank() const override { return rank_; }
  int32_t ranks() const override { return region_.wiring().ranks; }
  int32_t slots() const override { return region_.wiring().slots; }
  int64_t slot_bytes() const override { return region_.wiring().slot_bytes; }
  ConnectionEnd At(int32_t connection) override;
  void Put(int32_t connection, int64_t bytes) override;
  void Take(int32_t connection) override;
  uint32_t Ticket() const override;
  void Wait(uint32_t ticket, std::chrono::nanoseconds limit) override;
  void Enter() override;
  void Leave() override;
  void NoteProgress() override;
  uint64_t TotalProgress() const override;
  void Fail(const Status& status) override;
  std::optional<Status> Failure() const override;
  void CheckPeers() override;
  Status Barrier(std::chrono::nanoseconds limit) override;

  // kNamed: watches the processes whose ids are in the cells from here on.
  void WatchPeers();

 private:
  const SharedRegion& region_;
  const Rank rank_;
  RankCell& cell_;
  bool spins_ = true;             // there is a core for every rank
  std::vector<OwnedFile> peers_;  // their processes by rank, where they are watched
  std::chrono::steady_clock::time_point checked_at_;
};

// The same for a caller that is no rank: a parent that saw a child die, an abort.
void FailRegion(const SharedRegion& region, const Status& status);

}  // namespace xccl
