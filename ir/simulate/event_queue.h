// A queue of timed events for simulators: events are taken in batches of equal time, and none is pushed
// into the past. A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990): an event moves at most once per bit in
// which its time differs from the present, in practice two or three times.
#pragma once

#include <array>
#include <bit>
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
    buckets_[Bucket(time_ps)].push_back({time_ps, what});
    ++size_;
  }
  bool empty() const { return size_ == 0; }

  // Moves all events of the least time into `batch` (cleared first) and returns that time. Events of the
  // same time that are pushed later form another batch. Requires: not empty.
  int64_t PopBatch(std::vector<Event>& batch) {
    XCCL_CHECK(size_ > 0);
    if (buckets_[0].empty()) Refill();
    batch.clear();
    batch.swap(buckets_[0]);
    size_ -= batch.size();
    return now_;
  }

 private:
  size_t Bucket(int64_t time_ps) const {
    return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(time_ps) ^ static_cast<uint64_t>(now_)));
  }
  void Refill() {
    size_t b = 1;
    while (buckets_[b].empty()) ++b;
    int64_t least = buckets_[b].front().time_ps;
    for (const Event& event : buckets_[b]) least = event.time_ps < least ? event.time_ps : least;
    now_ = least;
    for (const Event& event : buckets_[b]) buckets_[Bucket(event.time_ps)].push_back(event);
    buckets_[b].clear();
  }

  std::array<std::vector<Event>, 65> buckets_;  // by the highest bit that differs from now_
  int64_t now_ = 0;
  uint64_t size_ = 0;
};

}  // namespace xccl
