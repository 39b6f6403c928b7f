// A meeting of ranks of one process: each comes with a choice, and the last to come makes what all take home.
// It replaces, for threads, what processes agree on through their bootstrap.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/ids.h"
#include "base/status.h"

namespace xccl::c_api {

struct Comm;

// Where a rank goes when a communicator is split.
struct Choice {
  int color = 0, key = 0;
};

// Safe from any thread.
class Assembly {
 public:
  using Choices = std::map<Rank, Choice>;
  using Made = std::map<Rank, std::shared_ptr<Comm>>;
  using Make = std::function<StatusOr<Made>(const Choices& all)>;
  // Waits until `members` ranks have come under the key, and returns what make() gave this one; null where it
  // gave none. A key may be used again when all have come. `stop` is asked now and then. Errors: those of
  // make(), for all; of `stop`, after which this rank has not come; kLimit when the limit has passed.
  StatusOr<std::shared_ptr<Comm>> Meet(const std::string& key, Rank rank, size_t members, Choice mine,
                                       const Make& make, const std::function<Status()>& stop,
                                       std::chrono::nanoseconds limit);

 private:
  struct Table {
    Choices choices;
    StatusOr<Made> made = Made();
    bool over = false;
  };
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Table>> tables_;
};

}  // namespace xccl::c_api
