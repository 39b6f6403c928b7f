// A queue of timed events for simulators: events are taken in batches of equal time, and none is pushed
// into the past. A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990) with digits of several bits: an event
// moves at most once per digit in which its time differs from the present, in practice once or twice.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"

namespace xccl {

struct Event {
  int64_t time_ps = 0;  // >= 0
  uint64_t what = 0;    // the user's own code
};

class EventQueue {
 public:
  // Requires: time_ps >= the time of the last batch.
  void Push(int64_t time_ps, uint64_t what) {
    Add({time_ps, what});
    ++size_;
  }
  bool empty() const { return size_ == 0; }

  // Moves all events of the least time into `batch` (cleared first) and returns that time. Events of the
  // same time that are pushed later form another batch. Requires: not empty.
  int64_t PopBatch(std::vector<Event>& batch) {
    XCCL_CHECK(size_ > 0);
    if (due_.empty()) Refill();
    batch.clear();
    batch.swap(due_);
    size_ -= batch.size();
    return now_;
  }

 private:
  static constexpr int kBits = 4;  // bits of a digit
  static constexpr size_t kDigits = size_t{1} << kBits, kLevels = 64 / kBits;

  // Puts an event into the bucket of the highest digit in which its time differs from now_.
  void Add(const Event& event) {
    const auto time = static_cast<uint64_t>(event.time_ps);
    const uint64_t differs = time ^ static_cast<uint64_t>(now_);
    if (differs == 0) return due_.push_back(event);
    const auto level = static_cast<size_t>(std::bit_width(differs) - 1) / kBits;
    const size_t digit = (time >> (kBits * level)) % kDigits;
    buckets_[level * kDigits + digit].push_back(event);
    used_[level] |= uint32_t{1} << digit;
    levels_ |= uint32_t{1} << level;
  }
  void Refill() {
    const auto level = static_cast<size_t>(std::countr_zero(levels_));
    const auto digit = static_cast<size_t>(std::countr_zero(used_[level]));
    std::vector<Event>& bucket = buckets_[level * kDigits + digit];
    used_[level] &= ~(uint32_t{1} << digit);
    if (used_[level] == 0) levels_ &= ~(uint32_t{1} << level);
    int64_t least = bucket.front().time_ps;
    for (const Event& event : bucket) least = event.time_ps < least ? event.time_ps : least;
    now_ = least;
    for (const Event& event : bucket) Add(event);
    bucket.clear();
  }

  std::vector<Event> due_;  // at now_
  std::array<std::vector<Event>, kLevels * kDigits> buckets_;
  std::array<uint32_t, kLevels> used_ = {};  // by level: its buckets with events, as bits
  uint32_t levels_ = 0;                      // levels with events, as bits
  int64_t now_ = 0;
  uint64_t size_ = 0;
};

}  // namespace xccl
