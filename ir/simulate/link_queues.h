// The links of a simulator. A link serves one entry at a time, and then takes the least entry that waits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace xccl {

template <typename Entry>
class LinkQueues {
 public:
  explicit LinkQueues(int32_t links) : links_(static_cast<size_t>(links)) {}

  void Add(int32_t link, const Entry& entry) {
    std::vector<Entry>& waiting = links_[link].waiting;
    waiting.push_back(entry);
    std::push_heap(waiting.begin(), waiting.end(), std::greater<>());
    if (!links_[link].busy) Touch(link);
  }
  void Release(int32_t link) {
    links_[link].busy = false;
    Touch(link);
  }
  // Calls start(link, entry) for every idle link with entries that wait; the link is then busy.
  template <typename Start>
  void StartIdle(Start start) {
    for (size_t i = 0; i < touched_.size(); ++i) {
      Link& link = links_[touched_[i]];
      link.touched = false;
      if (link.busy || link.waiting.empty()) continue;
      std::pop_heap(link.waiting.begin(), link.waiting.end(), std::greater<>());
      const Entry entry = link.waiting.back();
      link.waiting.pop_back();
      link.busy = true;
      start(touched_[i], entry);
    }
    touched_.clear();
  }

 private:
  struct Link {
    std::vector<Entry> waiting;  // a min-heap
    bool busy = false, touched = false;
  };
  void Touch(int32_t link) {
    if (links_[link].touched) return;
    links_[link].touched = true;
    touched_.push_back(link);
  }

  std::vector<Link> links_;
  std::vector<int32_t> touched_;  // links that may start an entry
};

}  // namespace xccl
