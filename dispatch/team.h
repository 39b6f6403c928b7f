// What the threads of an expert team share: rings of messages between two ranks, and the state of a call.
// Internal to dispatch/run.h.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "dispatch/plan.h"
#include "dispatch/routing.h"
#include "dispatch/run.h"

namespace xccl::dispatch {

// A row in a message: what it is of, and in dispatch its token's choices.
struct Head {
  int32_t home, token;
  int32_t from;  // combine without sums on the way: the rank whose row it is
};

struct Message {
  std::vector<Head> heads;
  std::vector<int32_t> experts;  // top_k for each row; dispatch
  std::vector<float> weights;    // likewise
  std::vector<std::byte> bytes;  // of all rows
  bool last = false;

  bool empty() const { return heads.empty(); }
};

// A thread's sleep: it waits until a hop of its rank has a new message or a free slot.
class Bell {
 public:
  void Ring() {
    {
      const std::lock_guard lock(mutex_);
      ++rung_;
    }
    awake_.notify_one();
  }
  uint64_t rung() {
    const std::lock_guard lock(mutex_);
    return rung_;
  }
  // Waits until it was rung more often than that, or for a short while.
  void WaitBeyond(uint64_t seen) {
    std::unique_lock lock(mutex_);
    awake_.wait_for(lock, std::chrono::milliseconds(20), [&] { return rung_ != seen; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable awake_;
  uint64_t rung_ = 0;
};

// Messages from one thread to another, at most `slots` at a time.
class Ring {
 public:
  explicit Ring(int32_t slots) : slots_(static_cast<uint64_t>(slots)) {}

  bool HasRoom() const { return written_ - read_.load(std::memory_order_acquire) < slots_; }
  // Requires: HasRoom().
  void Push(Message message) {
    {
      const std::lock_guard lock(mutex_);
      messages_.push_back(std::move(message));
    }
    ++written_;
    receiver_->Ring();
  }
  // The oldest message, or null. It stays until Pop().
  const Message* Front() {
    const std::lock_guard lock(mutex_);
    return messages_.empty() ? nullptr : &messages_.front();
  }
  void Pop() {
    {
      const std::lock_guard lock(mutex_);
      messages_.pop_front();
    }
    read_.fetch_add(1, std::memory_order_release);
    sender_->Ring();
  }
  // Before a call, with no thread at work.
  void Begin(Bell& sender, Bell& receiver) {
    sender_ = &sender;
    receiver_ = &receiver;
    messages_.clear();
    written_ = 0;
    read_ = 0;
  }

 private:
  const uint64_t slots_;
  Bell *sender_ = nullptr, *receiver_ = nullptr;
  uint64_t written_ = 0;  // by the sender
  std::atomic<uint64_t> read_{0};
  std::mutex mutex_;
  std::deque<Message> messages_;
};

// One sender's end of a hop: the message that is being filled.
class Filling {
 public:
  Filling(Ring& ring, int32_t rows_per_message) : ring_(&ring), most_(rows_per_message) {}

  // Room for one more row; a full message is sent for that where a slot is free.
  bool HasRoom() {
    if (static_cast<int32_t>(message_.heads.size()) < most_) return true;
    return Send();
  }
  Message& message() { return message_; }
  // Sends what there is. True: all is sent.
  bool Flush() { return message_.empty() || Send(); }
  // Ends the hop. True: that is sent.
  bool End() {
    if (ended_) return true;
    if (!ring_->HasRoom()) return false;
    message_.last = true;
    ended_ = true;
    return Send();
  }
  bool ended() const { return ended_; }

 private:
  bool Send() {
    if (!ring_->HasRoom()) return false;
    ring_->Push(std::exchange(message_, {}));
    return true;
  }

  Ring* ring_;
  int32_t most_;
  Message message_;
  bool ended_ = false;
};

// State that the threads of one call share.
struct Watch {
  std::atomic<uint64_t> progress{0};
  std::atomic<bool> stop{false};
};

// A thread that has nothing to do sleeps.
class Idler {
 public:
  Idler(Watch& watch, Bell& bell) : watch_(watch), bell_(bell), seen_(bell.rung()) {}
  // After one round over all hops. False: the call was given up.
  bool GoOn(bool moved) {
    if (moved)
      watch_.progress.fetch_add(1, std::memory_order_relaxed);
    else
      bell_.WaitBeyond(seen_);
    seen_ = bell_.rung();
    return !watch_.stop.load(std::memory_order_relaxed);
  }

 private:
  Watch& watch_;
  Bell& bell_;
  uint64_t seen_;  // before the round
};

struct RankHops {
  std::vector<int32_t> in, out;  // hops into and out of the rank, in dispatch's direction
};

// What the threads of a team see of it.
struct Shared {
  const ExpertPlan& plan;
  HopIndex index;
  std::vector<RankHops> hops;
  std::vector<std::unique_ptr<Ring>> rings;  // by hop
  std::vector<Bell> bells;                   // by rank
  Watch watch;
};

// One rank's part of a call, on its thread; what it got so far where the call was given up.
Received DispatchOfRank(Shared& shared, int32_t rank, const Routing& routing,
                        std::span<const std::byte> rows);
// tokens: the rank's own.
Rows CombineOfRank(Shared& shared, int32_t rank, const Received& received, int32_t tokens, DataType type,
                   int64_t elements, std::span<const std::byte> outputs);

}  // namespace xccl::dispatch
