// The meeting of a communicator's processes, when its first book is loaded. It lasts until the slowest rank
// has come, so it runs on a thread of its own, which an abort leaves behind.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "runtime/backend.h"
#include "runtime/bootstrap/placement.h"
#include "runtime/launched/launched_group.h"

namespace xccl::c_api {

// Safe from any thread.
class Meeting {
 public:
  // Ranks that a launcher started meet at one address, so those of one process meet one after another, in the
  // order in which their meetings were made.
  explicit Meeting(Placement placement);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // The ranks that have met; they meet if they have not. The group lives as long as this object. Errors:
  // those of Bootstrap::Join, after which it may be tried again; the reason of an abort.
  StatusOr<LaunchedGroup*> Join(std::chrono::nanoseconds limit);
  // Meetings that are made later wait for this one, as long as the result lives. Null where none waits.
  std::shared_ptr<void> Announce();
  // The group, if the ranks have met.
  LaunchedGroup* group() const;
  // Ends Join, and the group on all ranks.
  void Abort(const Status& reason);
  // The group's failure, without waiting.
  Status Error() const;

 private:
  struct State;
  const Placement placement_;
  const std::shared_ptr<State> state_;
  const int number_;    // among those of its address, in the order in which they were made
  std::mutex joining_;  // held while ranks meet
  std::unique_ptr<LaunchedGroup> group_;
};

// Gives the back end what processes have in common: loads that fail on all ranks when they fail on one, and
// failures of idle ranks. `limit` is asked when ranks meet. Requires: a back end of GPUs has its `load`.
using TimeLimit = std::function<std::chrono::nanoseconds()>;
void AddMeeting(const std::shared_ptr<Meeting>& meeting, const TimeLimit& limit, Backend& backend);
// The back end of a rank on the CPU.
Backend CpuBackend(const std::shared_ptr<Meeting>& meeting, const TimeLimit& limit);

}  // namespace xccl::c_api
