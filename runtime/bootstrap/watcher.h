// The thread of a rank that reads the sockets to its partners: data of all-gathers, heartbeats, notices that
// a rank leaves, and failures, which it passes on. Thread-safe. One mutex guards all of it; a system call
// under it never waits.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "runtime/bootstrap/hello.h"
#include "runtime/bootstrap/lobby.h"
#include "runtime/bootstrap/mesh.h"

namespace xccl::bootstrap {

struct LeftRank {
  int32_t rank = 0;
  uint64_t call = 0;  // the last call that it noted
};

// How ranks that are no partners find each other.
struct Directory {
  std::unique_ptr<Lobby> door;  // this rank's
  Digest key = {};              // the group's (KeyOfGroup)
  std::vector<Partner> ranks;   // by rank: who it is and where its door is; no challenges
};

class Watcher {
 public:
  Watcher(int32_t rank, int32_t ranks, std::vector<Connected> partners, std::chrono::nanoseconds silence);
  // Tells the partners that this rank leaves, and sends what is still to be sent.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  Status Start();

  // The calls of the group: all ranks count them alike. Between them nobody waits for this rank in vain.
  uint64_t BeginCall();
  void Send(int32_t to, uint64_t call, uint32_t round, std::string_view bytes);
  // Waits for what `from` sends in that round. Errors: the group's failure; kPeerEnded where `from` has left;
  // kLimit, with the rank that holds the call up in *missing.
  StatusOr<std::string> Receive(int32_t from, uint64_t call, uint32_t round, Clock::time_point until,
                                int32_t* missing);

  void Post(std::string_view key, std::string_view text);
  std::optional<std::string> AwaitNote(std::string_view key, Clock::time_point until);

  // Once, when all ranks are known: from then on others may link with this rank.
  void Open(Directory directory);
  // Connects this rank with another, unless they are; notes then go between them, those of before too. The
  // end of a link is no failure. Errors: kPeerEnded where nobody answers within ten seconds.
  Status Link(int32_t rank);
  bool IsLinked(int32_t rank) const;  // there is a connection, and the other has not left

  void Fail(const Status& reason);
  std::optional<Status> Failure() const;
  void OnFailure(std::function<void(const Status&)> callback);
  std::vector<LeftRank> Left() const;  // ascending
  bool HasLeft(int32_t rank) const;
  void NoteCall(uint64_t call) { noted_call_.store(call, std::memory_order_relaxed); }
  void NoteProgress() {
    if (!noted_.load(std::memory_order_relaxed)) noted_.store(true, std::memory_order_relaxed);
  }
  uint64_t Progress() const;

 private:
  struct Peer {
    Partner partner;
    Connection connection;
    std::string out;  // to be sent
    size_t sent = 0;  // bytes of `out` that have been sent
    Clock::time_point heard;
    bool left = false, ended = false, shut = false;
    bool link = false;   // the peer is no partner
    uint64_t call = 0;   // the call that it is in, by its last heartbeat
    int32_t awaits = 0;  // the rank that holds it up
  };

  void Run();
  bool Turn(std::unique_lock<std::mutex>& lock);
  void Leave(std::unique_lock<std::mutex>& lock);
  static bool HasSent(Peer& peer);
  void Read(Peer& peer);
  void Take(Peer& peer);  // the messages that its reader holds
  void Take(Peer& peer, StatusOr<Message> message);
  Status Hear(Peer& peer, const Message& message);
  Status HearHeartbeat(Peer& peer, std::string_view body);
  Status HearData(Peer& peer, std::string_view body);
  void HearLeft(Peer& peer, const LeftRank& left);
  void PostLocked(std::string_view key, std::string_view text, const Peer* from = nullptr);
  bool IsLinkedLocked(int32_t rank) const;
  Peer& AddLink(const Partner& partner, Connection connection);
  void TellNotes(Peer& peer);
  void AnswerDoor();
  Peer* Admit(const Lobby::Event& event);
  void End(Peer& peer, int error);
  void CheckSilence(Clock::time_point now);
  void Beat(Clock::time_point now);
  void Queue(Peer& peer, MessageType type, std::string_view body);
  static void Flush(Peer& peer);
  void QueueToAll(MessageType type, std::string_view body, const Peer* but = nullptr);
  void FailLocked(const Status& reason, const Peer* from = nullptr);
  void FoldProgress() const;
  int32_t Culprit() const;
  std::chrono::nanoseconds LinkLimit() const;
  void Wake() const;
  Peer& PeerOfRank(int32_t rank);

  const int32_t rank_, ranks_;
  const std::chrono::nanoseconds silence_, period_;
  OwnedFile wake_;
  std::thread thread_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Peer> peers_;  // none goes, and none moves: first the partners
  Directory directory_;
  std::set<int32_t> calls_, called_by_;  // the ranks that this one has linked with, and the other way round
  std::map<std::tuple<int32_t, uint64_t, uint32_t>, std::string> inbox_;  // by sender, call and round
  std::map<std::string, std::string, std::less<>> notes_;                 // by key
  std::optional<Status> failure_;
  std::vector<std::function<void(const Status&)>> callbacks_;
  std::map<int32_t, uint64_t> left_;  // the last call that each rank noted which has left
  std::string left_news_;             // kLeft entries that partners are not told yet
  bool leaving_ = false;
  uint64_t call_ = 0;              // the last that this rank began
  std::optional<int32_t> awaits_;  // the partner for which it waits, and since when
  Clock::time_point awaits_since_;
  std::chrono::nanoseconds stuck_after_{};  // the wait after which it tells so
  std::pair<uint64_t, int32_t> told_{};     // call and culprit in the last heartbeat
  Clock::time_point beat_, turned_;
  bool spread_ = false;  // progress grew by a partner's heartbeat
  mutable uint64_t progress_ = 0;
  mutable std::atomic<bool> noted_{false};
  std::atomic<uint64_t> noted_call_{0};
};

}  // namespace xccl::bootstrap
