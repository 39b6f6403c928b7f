// One rank of a group that runs planned collectives. Calls are queued and return at once, so one caller may
// drive several ranks. On back ends that connect ranks, a thread of the communicator executes them in order;
// on back ends that run whole programs they go to the call's stream. The first failure ends the communicator:
// later calls fail with the same reason.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "runtime/backend.h"
#include "runtime/executor.h"
#include "runtime/plan_book.h"
#include "runtime/served_plan.h"

namespace xccl {

struct CommunicatorOptions {
  std::chrono::nanoseconds time_limit = std::chrono::seconds(30);  // without progress on any rank
};

// Public functions are safe from any thread.
class Communicator {
 public:
  // Requires: 0 <= rank < ranks.
  Communicator(Rank rank, int32_t ranks, Backend backend, const CommunicatorOptions& options);
  ~Communicator();  // waits for what is queued

  Rank rank() const { return rank_; }
  int32_t ranks() const { return ranks_; }

  // Reads and verifies the plans of a book that are for this number of ranks, and connects. All ranks load
  // the same books in the same order; calls in between use the book before. Errors: those of reading; no plan
  // for `ranks`; kSystem without a thread to execute calls on.
  Status LoadPlanBook(const std::string& directory);
  // The same for plans at hand. Requires: they verify and are for all ranks of this communicator.
  Status LoadPlans(std::string name, std::vector<ServedPlan> plans);

  // The back end's notes on the plans loaded so far, a line each.
  std::vector<std::string> Notices() const;

  // Queues a call. Errors at once: no plan serves it, null buffers, a root that is no rank, an earlier
  // failure.
  Status Enqueue(const Call& call);
  // Buffers that peers may read and write without a copy in between, until they are deregistered. All ranks
  // call both in the same order, after a book was loaded. 0: peers reach all buffers anyway, or none.
  StatusOr<int32_t> Register(const std::byte* buffer, size_t bytes);
  Status Deregister(int32_t handle);
  // Waits until everything queued is done. Returns the first failure.
  Status Synchronize();
  Status AsyncError() const;  // without waiting
  // Ends the operation on all ranks; queued calls do not run.
  void Abort();

 private:
  struct Loaded;
  // The key of a RankWork: plan, count, element size, in place.
  using WorkKey = std::tuple<size_t, int64_t, int64_t, bool>;

  Status StartWorker();
  void Work();
  Status EnqueueToRunner(Loaded& loaded, size_t plan, const Call& call, bool in_place);
  Status Execute(Loaded& loaded, size_t plan, const Call& call, bool in_place);
  StatusOr<const RankWork*> WorkFor(Loaded& loaded, size_t plan, const Call& call, bool in_place);

  const Rank rank_;
  const int32_t ranks_;
  const Backend backend_;
  const CommunicatorOptions options_;
  std::mutex launching_;      // held around a runner's launch, so that calls keep their order; before mutex_
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::function<Status()>> queue_;
  std::shared_ptr<Loaded> loaded_;  // shared with calls that are queued: a later book does not pull it away
  std::vector<std::shared_ptr<Loaded>> books_;  // all of them, for Abort
  mutable Status failure_;                      // also found by looking at a runner
  bool busy_ = false, stopping_ = false;
  std::thread worker_;  // from the first load of a book whose ranks are connected
};

// Do the call's buffers overlap as NCCL's in-place rules say, on this rank?
bool IsInPlace(const Call& call, Rank rank);

}  // namespace xccl
