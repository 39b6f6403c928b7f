// Handles of the C API: numbers that are never used twice, for values that the calls which use them share.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"

namespace xccl::c_api {

// A T has kMissing, the text for a handle that there is not, and CheckUsable(), a failure where a value that
// there is cannot be used. Safe from any thread.
template <typename Handle, typename T>
class Registry {
 public:
  // The process's registry. It is never freed: values that a program leaves behind would wait for their
  // threads at its end, and in a forked child those do not exist. The mutex is held around a fork, so that a
  // child finds it free.
  static Registry& Get() {
    static Registry& registry = *[] {
      pthread_atfork([] { Get().mutex_.lock(); }, [] { Get().mutex_.unlock(); },
                     [] { Get().mutex_.unlock(); });
      return new Registry;
    }();
    return registry;
  }

  std::vector<Handle> Add(std::vector<std::shared_ptr<T>> values) {
    std::vector<Handle> handles;
    handles.reserve(values.size());
    const std::lock_guard lock(mutex_);
    all_.reserve(all_.size() + values.size());
    for (std::shared_ptr<T>& value : values) {
      const auto handle = std::bit_cast<Handle>(last_ + 1);
      all_.emplace(handle, std::move(value));
      ++last_;
      handles.push_back(handle);
    }
    return handles;
  }

  // Errors: kUsage for a handle that is dropped; those of CheckUsable.
  StatusOr<std::shared_ptr<T>> Find(Handle handle) {
    const std::lock_guard lock(mutex_);
    return FindLocked(handle);
  }

  // Find, and the handle is used up.
  StatusOr<std::shared_ptr<T>> Drop(Handle handle) {
    const std::lock_guard lock(mutex_);
    XCCL_ASSIGN_OR_RETURN(std::shared_ptr<T> dropped, FindLocked(handle));
    all_.erase(handle);
    return dropped;
  }

  template <typename Predicate>
  bool Any(const Predicate& predicate) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(all_, [&](const auto& entry) { return predicate(*entry.second); });
  }

 private:
  StatusOr<std::shared_ptr<T>> FindLocked(Handle handle) const {
    const auto found = all_.find(handle);
    if (found == all_.end()) return UsageError(T::kMissing);
    XCCL_RETURN_IF_ERROR(found->second->CheckUsable());
    return found->second;
  }

  std::mutex mutex_;  // guards what follows
  uintptr_t last_ = 0;
  std::unordered_map<Handle, std::shared_ptr<T>> all_;
};

}  // namespace xccl::c_api
